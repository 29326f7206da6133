#include "engine/base/files/output_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/files/system_calls.h"
#include "engine/base/log/log_file.h"
#include "engine/base/text/text.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

struct OutputFolders : ::testing::Test {
  std::string root = cat(::testing::TempDir(), "troupe-output-folder-", ::getpid());
  std::string victim = root + "/victim", elsewhere = root + "/elsewhere";
  OutputFolders() {
    fs::create_directories(root + "/out");
    fs::create_directories(elsewhere);
    value_or_throw(write_file_durably(victim, "precious"));
  }
  ~OutputFolders() override { fs::remove_all(root); }

  OutputFolder open(FileAccess access = FileAccess::by_umask) const {
    return value_or_throw(OutputFolder::open(root + "/out", access));
  }
  unsigned mode_of(const std::string& name) const {
    struct stat found {};
    return ::stat((root + "/out/" + name).c_str(), &found) == 0 ? found.st_mode & 0777 : 0;
  }
  void expect_refusal(const Error& error) const {
    EXPECT_EQ(error.code, Errc::io);
    EXPECT_THAT(error.what, HasSubstr("is a symbolic link, which is not followed here; remove it"));
    EXPECT_EQ(value_or_throw(read_file(victim)), "precious");
  }
};

TEST_F(OutputFolders, DoNotFollowALinkToAFile) {
  fs::create_symlink(victim, root + "/out/link");
  expect_refusal(open().append("link").error());
  expect_refusal(open().read("link").error());
}

TEST_F(OutputFolders, DoNotCreateAFileThroughADanglingLink) {
  fs::create_symlink(root + "/new", root + "/out/link");
  expect_refusal(open().append("link").error());
  EXPECT_FALSE(fs::exists(root + "/new"));
  EXPECT_TRUE(open().contains("link"));
}

TEST_F(OutputFolders, DoNotEnterALinkToAFolder) {
  fs::create_symlink(elsewhere, root + "/out/logs");
  expect_refusal(open().folder("logs").error());
  EXPECT_TRUE(fs::is_empty(elsewhere));
}

TEST_F(OutputFolders, ReplaceALinkRatherThanItsTarget) {
  fs::create_symlink(victim, root + "/out/config.yaml");
  fs::create_symlink(victim, cat(root, "/out/config.yaml.tmp-", ::getpid()));
  ASSERT_TRUE(open().replace("config.yaml", "new"));
  EXPECT_EQ(value_or_throw(read_file(victim)), "precious");
  EXPECT_FALSE(fs::is_symlink(root + "/out/config.yaml"));
  EXPECT_EQ(value_or_throw(open().read("config.yaml")), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(root + "/out"), {}), 1);
}

TEST_F(OutputFolders, StayTheSameFolderWhenTheirPathBecomesALink) {
  const OutputFolder folder = open();
  fs::rename(root + "/out", root + "/moved");
  fs::create_symlink(elsewhere, root + "/out");
  ASSERT_TRUE(folder.append("metrics.jsonl"));
  ASSERT_TRUE(folder.replace("plot.svg", "x"));
  ASSERT_TRUE(folder.folder("logs"));
  EXPECT_TRUE(fs::is_empty(elsewhere));
  EXPECT_TRUE(fs::is_directory(root + "/moved/logs"));
}

TEST_F(OutputFolders, AreForTheOwnerOnlyOrFollowTheUmask) {
  const mode_t before = ::umask(0);
  ASSERT_TRUE(open().append("a"));
  ASSERT_TRUE(open().replace("b", ""));
  ASSERT_TRUE(open().folder("c"));
  const OutputFolder own = open(FileAccess::owner_only);
  ASSERT_TRUE(own.append("d"));
  ASSERT_TRUE(own.replace("e", ""));
  ASSERT_TRUE(own.folder("f"));
  ASSERT_TRUE(value_or_throw(own.folder("f")).append("g"));
  ::umask(022);
  ASSERT_TRUE(open().append("h"));
  ::umask(before);
  EXPECT_EQ(mode_of("a"), 0666u);
  EXPECT_EQ(mode_of("b"), 0666u);
  EXPECT_EQ(mode_of("c"), 0777u);
  EXPECT_EQ(mode_of("d"), 0600u);
  EXPECT_EQ(mode_of("e"), 0600u);
  EXPECT_EQ(mode_of("f"), 0700u);
  EXPECT_EQ(mode_of("f/g"), 0600u);
  EXPECT_EQ(mode_of("h"), 0644u);
  ASSERT_TRUE(own.append("a")) << "written by an earlier version";
  EXPECT_EQ(mode_of("a"), 0600u);
}

TEST_F(OutputFolders, NameADirectoryAndAPipe) {
  fs::create_directory(root + "/out/folder");
  ASSERT_EQ(::mkfifo((root + "/out/pipe").c_str(), 0600), 0);
  EXPECT_THAT(open().read("folder").error().what,
              HasSubstr("expected a regular file, found a directory"));
  EXPECT_THAT(open().read("pipe").error().what,
              HasSubstr("expected a regular file, found a device or pipe"));
  EXPECT_FALSE(open().append("pipe"));
  EXPECT_EQ(value_or_throw(open().read("missing")), "");
}

TEST_F(OutputFolders, HoldALogOfBoundedSize) {
  const auto lines = [&](const char* name) { return value_or_throw(open().read(name)); };
  auto log = value_or_throw(LogFile::open(open(), "train.log", 20));
  log.write("one\n");
  log.write("two two two two\n");
  EXPECT_EQ(lines("train.log"), "one\ntwo two two two\n");
  log.write("three\n");
  EXPECT_EQ(lines("train.log.1"), "one\ntwo two two two\n");
  EXPECT_EQ(lines("train.log"), "three\n");
  auto again = value_or_throw(LogFile::open(open(), "train.log", 20));
  again.write("four\n");
  EXPECT_EQ(lines("train.log"), "three\nfour\n");
  again.write(std::string(30, 'x') + "\n");
  EXPECT_EQ(lines("train.log.1"), "three\nfour\n");
}

}  // namespace
}  // namespace troupe
