#include "launch/cluster/private_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace troupe::launch::private_folder_test {
namespace {

TEST(PrivateFolder, HasAFolderOfItsOwnForEachGroupAndLeavesNothing) {
  std::string path;
  {
    const PrivateFolder folder = value_or_throw(PrivateFolder::make());
    path = folder.path();
    const std::string policy = value_or_throw(folder.part("policy")),
                      critic = value_or_throw(folder.part("critic"));
    EXPECT_NE(policy, critic);
    EXPECT_EQ(value_or_throw(folder.part("policy")), policy) << "a group that is started again";
    EXPECT_EQ(std::filesystem::status(policy).permissions(), std::filesystem::perms::owner_all);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(PrivateFolder, SaysWhichFolderItCannotMake) {
  const PrivateFolder folder = value_or_throw(PrivateFolder::make());
  const auto made = folder.part("no/such");
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().what.find("no/such"), std::string::npos) << made.error().what;
}

}  // namespace
}  // namespace troupe::launch::private_folder_test
