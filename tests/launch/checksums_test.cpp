// troupe info FOLDER --checksums LIST.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

using testing::HasSubstr;
using testing::Not;

void put(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  ASSERT_TRUE(write_file_durably(path, text));
}

/// A folder with three files, and a list of them made by sha256sum.
std::string listed_folder() {
  const std::string folder = scratch_folder() + "/model";
  put(folder + "/config.json", "{}");
  put(folder + "/model.safetensors", "weights");
  put(folder + "/original/params name.json", "1");
  put(folder + "/.cache/huggingface/x", "of the downloader");
  EXPECT_EQ(std::system(cat("cd '", folder,
                            "' && find . -type f -not -path '*/.*' -print0 | xargs -0 sha256sum "
                            ">SHA256SUMS")
                            .c_str()),
            0);
  return folder;
}

ProgramOutput checked(const std::string& folder) {
  return run_program(cat("info '", folder, "' --checksums '", folder, "/SHA256SUMS'"));
}

TEST(Checksums, OfAnUntouchedFolderMatch) {
  const ProgramOutput said = checked(listed_folder());
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_THAT(said.out, HasSubstr("3 of 3 files match"));
}

TEST(Checksums, NameFilesThatDifferAreMissingOrNotListed) {
  const std::string folder = listed_folder();
  put(folder + "/model.safetensors", "Weights");
  put(folder + "/tokenizer.json", "{}");
  std::filesystem::remove_all(folder + "/original");
  const ProgramOutput said = checked(folder);
  EXPECT_EQ(said.code, 5);
  EXPECT_THAT(said.out, HasSubstr("model.safetensors: expected SHA-256 "));
  EXPECT_THAT(said.out, HasSubstr("original/params name.json: missing"));
  EXPECT_THAT(said.out, HasSubstr("tokenizer.json: not in the list"));
  EXPECT_THAT(said.out, Not(HasSubstr("config.json")));
  EXPECT_THAT(said.out, HasSubstr("1 of 3 files match"));
}

TEST(Checksums, AListThatIsNoneOrLeavesTheFolderIsRefused) {
  const std::string folder = listed_folder();
  put(folder + "/SHA256SUMS", "config.json: 12\n");
  const ProgramOutput other = checked(folder);
  EXPECT_EQ(other.code, 5);
  EXPECT_THAT(other.out, HasSubstr("SHA256SUMS:1: expected 64 hexadecimal digits"));
  put(folder + "/SHA256SUMS", std::string(64, 'a') + "  ../../etc/passwd\n");
  const ProgramOutput outside = checked(folder);
  EXPECT_EQ(outside.code, 5);
  EXPECT_THAT(outside.out, HasSubstr("is not in the folder"));
  EXPECT_EQ(run_program("info /dev/null --checksums x").code, 2);
}

}  // namespace
}  // namespace troupe::launch
