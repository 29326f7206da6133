#include "launch/cluster/output_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/cluster/process_log.h"
#include "tests/launch/program.h"

namespace troupe::launch::output_limit_test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using Time = cluster::OutputLimit::Time;

constexpr cluster::OutputRate narrow{.burst_bytes = 1000,
                                     .bytes_per_second = 100,
                                     .burst_lines = 10,
                                     .lines_per_second = 1,
                                     .tail_bytes = 60};

TEST(OutputLimit, DropsWhatExceedsTheLinesOrTheBytes) {
  cluster::OutputLimit lines(narrow, Time());
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(lines.admits("x", Time())) << i;
  EXPECT_FALSE(lines.admits("x", Time()));
  cluster::OutputLimit bytes(narrow, Time());
  EXPECT_TRUE(bytes.admits(std::string(900, 'x'), Time()));
  EXPECT_FALSE(bytes.admits(std::string(900, 'x'), Time()));
}

TEST(OutputLimit, AdmitsAgainAfterFiveSecondsAndCountsWhatItDropped) {
  cluster::OutputLimit limit(narrow, Time());
  for (int i = 0; i < 13; ++i) limit.admits("ten bytes.", Time());
  EXPECT_FALSE(limit.admits("ten bytes.", Time(seconds(4)))) << "a notice at most every 5 s";
  EXPECT_TRUE(limit.admits("ten bytes.", Time(seconds(5))));
  EXPECT_EQ(limit.take_notice(),
            "4 lines (44 bytes) of output dropped: more than 100 bytes or 1 lines per second");
  EXPECT_EQ(limit.take_notice(), "");
}

TEST(OutputLimit, KeepsTheEndOfTheOutputFromTheFirstDroppedLineOn) {
  cluster::OutputLimit limit(narrow, Time());
  for (int i = 0; i < 99; ++i) limit.admits(cat("dropped ", i), Time());
  EXPECT_THAT(limit.take_tail(), testing::ElementsAre("dropped 94", "dropped 95", "dropped 96",
                                                      "dropped 97", "dropped 98"));
  cluster::OutputLimit quiet(narrow, Time());
  quiet.admits("written", Time());
  EXPECT_THAT(quiet.take_tail(), testing::IsEmpty());
}

TEST(ProcessLog, OfAProcessThatPrintsWithoutEndStaysSmallAndKeepsTheEnd) {
  const std::string path = scratch_folder();
  const OutputFolder folder = value_or_throw(OutputFolder::open(path));
  cluster::ProcessLog log("node", folder);
  testing::internal::CaptureStderr();
  constexpr int lines = 200'000;
  for (int i = 0; i < lines; ++i)
    log.add(cat("accept failed: too many open files, connection ", i, " of an attacker\n"));
  log.finish();
  const std::string shown = testing::internal::GetCapturedStderr();
  const std::string text = value_or_throw(folder.read("node.log"));
  EXPECT_LT(text.size(), 400u << 10) << "of 14 MB";
  EXPECT_THAT(text, HasSubstr("connection 0 of an attacker\n"));
  EXPECT_THAT(text, testing::EndsWith("connection 199999 of an attacker\n"));
  EXPECT_THAT(text, testing::ContainsRegex(" W [0-9]+ lines \\([0-9]+ bytes\\) of output dropped"));
  const std::string tail = text.substr(text.find("the last output, complete:"));
  EXPECT_GT(tail.size(), (64u << 10) - 200);
  EXPECT_THAT(shown, HasSubstr("node: prints too much"));
  EXPECT_LT(shown.size(), 1000u) << "said once";
  std::filesystem::remove_all(path);
}

TEST(ProcessLog, StaysWithinTwoFilesOfEightMebibytes) {
  const std::string path = scratch_folder();
  const OutputFolder folder = value_or_throw(OutputFolder::open(path));
  cluster::ProcessLog log("node", folder, {.burst_bytes = 1 << 30, .burst_lines = 1 << 30});
  const std::string line(60'000, 'x');
  for (int i = 0; i < 300; ++i) log.add(line + "\n");
  log.finish();
  EXPECT_LT(std::filesystem::file_size(path + "/node.log"), 9u << 20);
  EXPECT_LT(std::filesystem::file_size(path + "/node.log.1"), 9u << 20);
  std::filesystem::remove_all(path);
}

}  // namespace
}  // namespace troupe::launch::output_limit_test
