#include "engine/base/environment/private_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "engine/base/environment/trusted_path.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"

namespace troupe::private_folder_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
namespace fs = std::filesystem;

/// XDG_RUNTIME_DIR is a directory of this test.
class PrivateFolderTest : public testing::Test {
 protected:
  PrivateFolderTest() {
    fs::create_directory(place_);
    fs::permissions(place_, fs::perms::owner_all);
    ::setenv("XDG_RUNTIME_DIR", place_.c_str(), 1);
  }
  ~PrivateFolderTest() override {
    if (before_)
      ::setenv("XDG_RUNTIME_DIR", before_->c_str(), 1);
    else
      ::unsetenv("XDG_RUNTIME_DIR");
    fs::remove_all(place_);
  }
  /// Makes a folder elsewhere and returns the warning that says why.
  std::string refusal() const {
    testing::internal::CaptureStderr();
    const PrivateFolder folder = value_or_throw(PrivateFolder::make());
    EXPECT_THAT(folder.path(), testing::Not(StartsWith(place_)));
    return testing::internal::GetCapturedStderr();
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(place_), fs::directory_iterator()));
  }
  /// A folder as a launch leaves it when it is killed.
  std::string leftover(const std::string& name) const {
    const std::string path = cat(place_, "/", name);
    fs::create_directories(path + "/policy/ompi");
    fs::permissions(path, fs::perms::owner_all);
    value_or_throw(write_file_durably(path + "/lock", ""));
    return path;
  }

  // A socket's path has at most 107 bytes.
  const std::string place_ = cat("/tmp/private_folder_test-", ::getpid());

 private:
  const std::optional<std::string> before_ =
      std::getenv("XDG_RUNTIME_DIR") ? std::optional<std::string>(std::getenv("XDG_RUNTIME_DIR"))
                                     : std::nullopt;
};

TEST_F(PrivateFolderTest, HasAFolderOfItsOwnForEachGroupAndLeavesNothing) {
  std::string path;
  {
    const PrivateFolder folder = value_or_throw(PrivateFolder::make());
    path = folder.path();
    EXPECT_THAT(path, StartsWith(place_ + "/troupe-"));
    const std::string policy = value_or_throw(folder.part("policy")),
                      critic = value_or_throw(folder.part("critic"));
    EXPECT_NE(policy, critic);
    EXPECT_EQ(value_or_throw(folder.part("policy")), policy) << "a group that is started again";
    EXPECT_EQ(fs::status(policy).permissions(), fs::perms::owner_all);
    value_or_throw(write_file_durably(policy + "/file", "x"));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(PrivateFolderTest, StatesWhichFolderItCannotMake) {
  const PrivateFolder folder = value_or_throw(PrivateFolder::make());
  const auto made = folder.part("no/such");
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().what, HasSubstr("no/such"));
}

TEST_F(PrivateFolderTest, IsNotInADirectoryThatOthersCanWriteTo) {
  fs::permissions(place_, fs::perms::all);
  EXPECT_THAT(refusal(),
              HasSubstr(cat("XDG_RUNTIME_DIR is not used for private files: other users can "
                            "write to ",
                            place_)));
  ::chmod(place_.c_str(), 01777);
  EXPECT_THAT(value_or_throw(PrivateFolder::make()).path(), StartsWith(place_)) << "sticky";
}

TEST_F(PrivateFolderTest, IsNotBelowADirectoryThatOthersCanWriteTo) {
  const std::string below = place_ + "/user";
  fs::create_directory(below);
  fs::permissions(below, fs::perms::owner_all);
  fs::permissions(place_, fs::perms::all);
  ::setenv("XDG_RUNTIME_DIR", below.c_str(), 1);
  EXPECT_THAT(refusal(), HasSubstr(cat("other users can write to ", place_, ";")));
}

TEST_F(PrivateFolderTest, IsNotInADirectoryOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can create a directory of another user";
  ASSERT_EQ(::chown(place_.c_str(), 65534, 65534), 0);
  EXPECT_THAT(refusal(), HasSubstr(cat(place_, " belongs to user 65534, not to user 0 or root")));
}

TEST_F(PrivateFolderTest, IsNotFollowedToWhereItWasReplaced) {
  const std::string victim = place_ + "/victim", moved = place_ + "/moved";
  fs::create_directories(victim + "/policy");
  value_or_throw(write_file_durably(victim + "/policy/file", "precious"));
  std::string path;
  {
    const PrivateFolder folder = value_or_throw(PrivateFolder::make());
    path = folder.path();
    value_or_throw(write_file_durably(value_or_throw(folder.part("policy")) + "/file", "own"));
    fs::rename(path, moved);
    fs::create_directory_symlink(victim, path);
    const auto made = folder.part("critic");
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().what, HasSubstr("was renamed or replaced"));
    EXPECT_FALSE(fs::exists(victim + "/critic"));
  }
  EXPECT_TRUE(fs::is_symlink(path)) << "it belongs to somebody else";
  EXPECT_TRUE(fs::exists(victim + "/policy/file"));
  EXPECT_TRUE(fs::is_empty(moved)) << "the own files are removed";
}

TEST_F(PrivateFolderTest, RemovesWhatKilledLaunchesLeft) {
  const std::string dead = leftover("troupe-abcdef"), alive = leftover("troupe-ghijkl"),
                    other = leftover("troupe-reward-abcdef"), created = leftover("troupe-mnopqr");
  fs::remove(created + "/lock");  // another launch is about to create it
  const int lock = ::open((alive + "/lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  { const PrivateFolder folder = value_or_throw(PrivateFolder::make()); }
  EXPECT_FALSE(fs::exists(dead));
  for (const std::string& kept : {alive, other, created}) EXPECT_TRUE(fs::exists(kept)) << kept;
  ::close(lock);
  { const PrivateFolder folder = value_or_throw(PrivateFolder::make()); }
  EXPECT_FALSE(fs::exists(alive));
}

TEST_F(PrivateFolderTest, OfALaunchThatRunsIsNotRemovedByAnother) {
  const PrivateFolder first = value_or_throw(PrivateFolder::make());
  const PrivateFolder second = value_or_throw(PrivateFolder::make());
  EXPECT_TRUE(fs::exists(first.path()));
  EXPECT_EQ(entries(), 2u);
}

TEST(TrustedPath, IsWithoutLinks) {
  const std::string folder = cat("/tmp/trusted_path_test-", ::getpid());
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms::owner_all);
  fs::create_directory_symlink(folder, folder + "/link");
  EXPECT_EQ(value_or_throw(trusted_path(folder + "/link")), folder);
  EXPECT_EQ(trusted_path(folder + "/none").error().code, Errc::not_found);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace troupe::private_folder_test
