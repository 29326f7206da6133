#include "engine/base/log/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

#include "engine/base/text/text.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

struct Logs : ::testing::Test {
  std::string path = cat(::testing::TempDir(), "troupe-log-", ::getpid());
  Logs() { std::filesystem::create_directories(path); }
  ~Logs() override {
    set_log_level(LogLevel::info);
    close_log_file();
    std::filesystem::remove_all(path);
  }
  OutputFolder folder() const { return value_or_throw(OutputFolder::open(path)); }
  std::string file() const { return value_or_throw(folder().read("train.log")); }
  /// What `work` writes to stderr.
  template <class Work>
  std::string shown(const Work& work) const {
    ::testing::internal::CaptureStderr();
    work();
    return ::testing::internal::GetCapturedStderr();
  }
};

const std::string date = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[.][0-9]{3}Z ";

TEST_F(Logs, HaveDatesInTheFileAndKeepEarlierLines) {
  const std::string said = shown([] { log_warning("early"); });
  EXPECT_THAT(said, HasSubstr(" W early\n"));
  ASSERT_TRUE(set_log_file(folder(), "train.log"));
  shown([] {
    log_info("two\nlines \x1b[31m\xc2\x9b");
    log_error("three");
  });
  log_to_file(LogLevel::error, "four");
  EXPECT_THAT(file(), MatchesRegex(cat("(.*\n)*", date, "W early\n", date,
                                       "I two\\\\nlines \\\\x1b\\[31m\\\\u009b\n", date,
                                       "E three\n", date, "E four\n")));
  close_log_file();
  ASSERT_TRUE(set_log_file(folder(), "train.log"));
  shown([] { log_info("after a restart"); });
  EXPECT_THAT(file(), MatchesRegex(cat("(.*\n)*", date, "E four\n", date, "I after a restart\n")));
}

TEST_F(Logs, OfALevelAreShownFromItOn) {
  ASSERT_TRUE(set_log_file(folder(), "train.log"));
  const auto all = [] {
    log_debug("a");
    log_info("b");
    log_warning("c");
    log_error("d");
  };
  EXPECT_THAT(shown(all), MatchesRegex("[0-9:]{8} I b\n[0-9:]{8} W c\n[0-9:]{8} E d\n"));
  set_log_level(LogLevel::error);
  EXPECT_THAT(shown(all), MatchesRegex("[0-9:]{8} E d\n"));
  EXPECT_THAT(file(), HasSubstr(" I b\n")) << "the file keeps what stderr does not show";
  EXPECT_THAT(file(), Not(HasSubstr(" D a\n")));
  set_log_level(LogLevel::debug);
  EXPECT_THAT(shown(all), HasSubstr(" D a\n"));
  EXPECT_THAT(file(), HasSubstr(" D a\n"));
}

}  // namespace
}  // namespace troupe
