#include "engine/base/file.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

namespace troupe {
namespace {

struct Files : ::testing::Test {
  std::string folder = (std::filesystem::path(::testing::TempDir()) / ("troupe-file-test-" + std::to_string(::getpid()))).string();
  Files() { std::filesystem::create_directories(folder); }
  ~Files() override { std::filesystem::remove_all(folder); }
};

TEST_F(Files, ADurableWriteReadsBackAndLeavesNothingElse) {
  ASSERT_TRUE(write_file_durably(folder + "/a", "one"));
  ASSERT_TRUE(write_file_durably(folder + "/a", "two"));
  EXPECT_EQ(read_file(folder + "/a").value(), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST_F(Files, RefusesDirectoriesMissingFilesAndOversizedOnes) {
  EXPECT_EQ(read_file(folder).error().code, Errc::io);
  EXPECT_EQ(read_file(folder + "/none").error().code, Errc::not_found);
  ASSERT_TRUE(write_file_durably(folder + "/a", "12345"));
  EXPECT_EQ(read_file(folder + "/a", 4).error().code, Errc::bad_input);
  EXPECT_EQ(read_file("/dev/zero").error().code, Errc::io);
}

TEST_F(Files, TheKernelsFilesAreReadWithoutTheirSize) {
  EXPECT_TRUE(kernel_text("/proc/self/stat").starts_with(std::to_string(::getpid()) + " ("));
  EXPECT_GT(kernel_text("/proc/self/smaps").size(), 4096u);
  EXPECT_EQ(kernel_text("/proc/self"), "");
  EXPECT_EQ(kernel_text(folder + "/none"), "");
}

TEST_F(Files, AMapShowsTheBytes) {
  ASSERT_TRUE(write_file_durably(folder + "/a", "abc"));
  const auto map = MappedFile::open(folder + "/a");
  ASSERT_TRUE(map);
  EXPECT_EQ(map->bytes().size(), 3u);
  EXPECT_EQ(static_cast<char>(map->bytes()[1]), 'b');
}

}  // namespace
}  // namespace troupe
