#include "engine/base/environment/module.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/base/text/text.h"

namespace troupe {
namespace {

TEST(Module, OneThatIsNotThereIsRefusedWithTheFolder) {
  const auto symbol = load_from_module("libtroupe_nothing.so", "start");
  ASSERT_FALSE(symbol);
  EXPECT_EQ(symbol.error().code, Errc::not_found);
  EXPECT_THAT(symbol.error().what,
              ::testing::MatchesRegex("no libtroupe_nothing.so beside /.*tests"));
}

// In a folder that others can write to, such as /tmp, anybody can put a library beside the program.
TEST(Module, OneOfAnotherUserIsNotLoaded) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can create a file of another user";
  const std::string name = cat("libtroupe_planted_", ::getpid(), ".so");
  const auto file = std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
  std::ofstream(file) << "planted";
  EXPECT_TRUE(has_module(name));
  ASSERT_EQ(::chown(file.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(has_module(name));
  EXPECT_EQ(load_from_module(name, "start").error().code, Errc::not_found);
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace troupe
