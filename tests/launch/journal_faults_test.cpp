// The journal of a run on a full disk, and after a power failure.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <map>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/journal/line_tail.h"
#include "launch/journal/run_journal.h"
#include "launch/journal/timeline.h"

namespace troupe::launch::journal_faults {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class JournalFaults : public testing::Test {
 protected:
  JournalFaults() {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~JournalFaults() override { std::filesystem::remove_all(path_); }

  OutputFolder folder() const { return value_or_throw(OutputFolder::open(path_)); }
  std::string text(const std::string& name) const {
    return read_file(path_ + "/" + name).value_or("missing");
  }
  void write(const std::string& name, const std::string& content) const {
    value_or_throw(write_file_durably(path_ + "/" + name, content));
  }
  /// Steps of a JSON-lines file.
  std::vector<std::int64_t> steps(const std::string& name) const {
    std::vector<std::int64_t> out;
    journal::for_each_line(path_ + "/" + name, [&](const Json& line, std::string_view) {
      out.push_back(line.find("step")->integer());
    });
    return out;
  }
  /// A run from step `from` to `to` with two samples a step and a checkpoint at `to`; its log.
  std::string run(std::int64_t from, std::int64_t to) {
    testing::internal::CaptureStderr();
    {
      journal::RunJournal journal(folder(), "test", "sft", 0);
      if (from > 0) journal.expect(saved_[from]);
      journal.begin(to, from);
      for (std::int64_t step = from + 1; step <= to; ++step) {
        for (const char* prompt : {"p", "q"})
          journal.sample(
              step, {.prompt = prompt, .completion = "c", .finish_reason = "stop", .parts = {}});
        journal.record(step, {{"loss", 2.5}});
      }
      saved_[to] = journal.commit(to);
    }
    return testing::internal::GetCapturedStderr();
  }

  std::map<std::int64_t, Json> saved_;  // of the checkpoints
  std::string path_ = cat(testing::TempDir(), "journal_faults");
};

actors::AskRecord call(std::int64_t at) {
  return {{"node", "policy"}, "train_step", at, at + 1, at + 2, at + 3, false};
}

TEST_F(JournalFaults, FilesThatOnlyDescribeARunAreGivenUp) {
  const char* const files[] = {"timings.jsonl", "timeline.jsonl", "samples.txt", "plot.svg"};
  for (const char* file : files) std::filesystem::create_directories(path_ + "/" + file + "/x");
  const std::string said = run(0, 3);
  EXPECT_THAT(steps("metrics.jsonl"), ElementsAre(1, 2, 3));
  EXPECT_THAT(steps("samples.jsonl"), ElementsAre(1, 1, 2, 2, 3, 3));
  for (const char* file : files) {
    const auto first = said.find(cat("/", file));
    EXPECT_NE(first, std::string::npos) << file << " is missing in " << said;
    EXPECT_EQ(said.find(cat("/", file), first + 1), std::string::npos)
        << file << " twice: " << said;
  }
}

TEST_F(JournalFaults, MetricsThatCannotBeWrittenEndTheRun) {
  std::filesystem::create_directories(path_ + "/metrics.jsonl");
  EXPECT_THROW(run(0, 3), Failure);
  testing::internal::GetCapturedStderr();
}

TEST_F(JournalFaults, AFileIsGivenUpWithOneWarning) {
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 300, before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  testing::internal::CaptureStderr();
  journal::Timeline timeline(folder(), 0);
  for (std::int64_t i = 0; i < 10; ++i) timeline.answered(call(i));
  const std::string said = testing::internal::GetCapturedStderr();
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  const auto first = said.find("timeline.jsonl: cannot write: File too large; the run continues");
  EXPECT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("cannot write", first + 20), std::string::npos) << said;
}

TEST_F(JournalFaults, NothingIsReportedWhereNothingIsMissing) {
  run(0, 10);
  EXPECT_THAT(run(10, 12), Not(HasSubstr("jsonl")));
  EXPECT_THAT(run(10, 11), Not(HasSubstr("jsonl"))) << "killed after step 12, resumed from 10";
}

TEST_F(JournalFaults, MissingStepsAreReported) {
  run(0, 10);
  std::string lines;
  for (const int step : {1, 2, 3, 6}) lines += cat("{\"step\":", step, ",\"loss\":2.5}\n");
  write("metrics.jsonl", lines);
  const std::string said = run(10, 12);
  EXPECT_THAT(said, HasSubstr("metrics.jsonl: expected the 10 lines that it had when checkpoint-10 "
                              "was saved, found 4 (without steps 4 to 5, 7 to 10)"));
  EXPECT_THAT(said, HasSubstr("The run resumes from the checkpoint"));
  EXPECT_THAT(said, Not(HasSubstr("samples.jsonl")));
  EXPECT_THAT(steps("metrics.jsonl"), ElementsAre(1, 2, 3, 6, 11, 12));
}

TEST_F(JournalFaults, MissingSamplesAndFilesAreReported) {
  run(0, 4);
  std::filesystem::remove(path_ + "/samples.jsonl");
  std::filesystem::remove(path_ + "/metrics.jsonl");
  const std::string said = run(4, 5);
  EXPECT_THAT(said, HasSubstr("samples.jsonl: expected the 8 lines that it had when checkpoint-4 "
                              "was saved, found 0: "));
  EXPECT_THAT(said, HasSubstr("found 0 (without steps 1 to 4)"));
}

TEST_F(JournalFaults, AChangedDigitIsReported) {
  const std::pair<const char*, const char*> values[] = {{"metrics.jsonl", "2.5"},
                                                        {"samples.jsonl", "\"q\""}};
  for (const auto& [name, value] : values) {
    run(0, 4);
    std::string lines = text(name);
    lines[lines.find(value) + 1] = '7';
    write(name, lines);
    const std::string said = run(4, 5);
    EXPECT_THAT(said, HasSubstr(cat(name, ": expected the checksum "))) << said;
    EXPECT_THAT(said, HasSubstr("lines had when checkpoint-4 was saved"));
    EXPECT_THAT(run(5, 6), Not(HasSubstr("jsonl"))) << "reported once";
    std::filesystem::remove(path_ + "/metrics.jsonl");
    std::filesystem::remove(path_ + "/samples.jsonl");
  }
}

TEST_F(JournalFaults, ACheckpointOfVersion010HasNumbersOfLines) {
  run(0, 4);
  saved_[4] = Json();
  write(".journal.jsonl", "{\"step\":4,\"metrics\":5,\"samples\":8}\n");
  const std::string said = run(4, 5);
  EXPECT_THAT(said, HasSubstr("expected the 5 lines"));
  EXPECT_THAT(said, Not(HasSubstr("samples.jsonl")));
}

TEST_F(JournalFaults, ZerosAtTheEndAreReportedAndRemoved) {
  run(0, 10);
  const std::string whole = text("metrics.jsonl");
  write("metrics.jsonl", whole + std::string(512, '\0'));  // after the checkpoint: no gap
  std::string said = run(10, 11);
  EXPECT_THAT(said, HasSubstr("metrics.jsonl: removed 512 bytes (512 of them zero)"));
  EXPECT_THAT(said, Not(HasSubstr("lines that it had")));
  write("metrics.jsonl", whole.substr(0, whole.size() - 10) + std::string(10, '\0'));
  said = run(10, 11);
  EXPECT_THAT(said, HasSubstr("(10 of them zero)"));
  EXPECT_THAT(said, HasSubstr("found 9 (without steps 10)"));
}

TEST_F(JournalFaults, TheTimelineIsBounded) {
  constexpr std::uint64_t limit = 8192;
  {
    journal::Timeline timeline(folder(), 0, limit);
    for (std::int64_t step = 1; step <= 400; ++step) {
      timeline.answered(call(step));
      timeline.record(step);
    }
  }
  const auto sizes = text("timeline.jsonl").size() + text("timeline.jsonl.1").size();
  EXPECT_LE(sizes, limit);
  EXPECT_GT(sizes, limit / 2);
  EXPECT_EQ(steps("timeline.jsonl").back(), 400);
  EXPECT_EQ(steps("timeline.jsonl.1").back() + 1, steps("timeline.jsonl").front());
  journal::Timeline again(folder(), 380, limit);
  EXPECT_EQ(steps("timeline.jsonl").back(), 380);
  journal::Timeline earlier(folder(), steps("timeline.jsonl.1").back() - 3, limit);
  EXPECT_EQ(text("timeline.jsonl"), "");
}

TEST_F(JournalFaults, ATimelineThatIsSwitchedOffWritesNothing) {
  {
    journal::Timeline timeline(folder(), 0, 0);
    timeline.answered(call(1));
    timeline.record(1);
    EXPECT_TRUE(timeline.draw());
  }
  EXPECT_TRUE(std::filesystem::is_empty(path_));
}

std::int64_t bytes_read() {
  const std::string io = read_proc_file("/proc/self/io");
  return io.starts_with("rchar: ") ? std::stoll(io.substr(7)) : -1;
}

TEST_F(JournalFaults, ARestartReadsTheEndOfALongTimelineOnly) {
  if (bytes_read() < 0) GTEST_SKIP() << "/proc/self/io is not readable";
  write("timeline.jsonl", "");
  std::filesystem::resize_file(path_ + "/timeline.jsonl", 512 << 20);  // a hole
  const std::string end = "\n{\"step\":7}\n{\"step\":8}\n{\"step\":9}\n{\"st";
  std::FILE* file = std::fopen((path_ + "/timeline.jsonl").c_str(), "a");
  std::fputs(end.c_str(), file);
  std::fclose(file);
  const std::int64_t before = bytes_read();
  const auto size = journal::truncate_tail_after(folder(), "timeline.jsonl", 8);
  EXPECT_LT(bytes_read() - before, 1 << 20);
  EXPECT_EQ(value_or_throw(size),
            (512u << 20) + std::string("\n{\"step\":7}\n{\"step\":8}\n").size());
  EXPECT_EQ(std::filesystem::file_size(path_ + "/timeline.jsonl"), *size);
}

TEST_F(JournalFaults, TheEndOfAFileIsFoundBeyondBlocksAndDamage) {
  std::string lines;
  for (int step = 1; step <= 20000; ++step) lines += cat("{\"step\":", step, "}\n");
  write("lines.jsonl", lines + std::string(200000, '\0') + "no JSON\n[]\n{}\n");
  const std::string kept = lines.substr(0, lines.find("{\"step\":12}"));
  EXPECT_EQ(value_or_throw(journal::truncate_tail_after(folder(), "lines.jsonl", 11)), kept.size());
  EXPECT_EQ(text("lines.jsonl"), kept);
  EXPECT_EQ(value_or_throw(journal::truncate_tail_after(folder(), "lines.jsonl", 0)), 0u);
  EXPECT_EQ(text("lines.jsonl"), "");
  write("lines.jsonl", std::string(3 << 20, '\0'));
  EXPECT_EQ(value_or_throw(journal::truncate_tail_after(folder(), "lines.jsonl", 5)), 0u);
  EXPECT_EQ(value_or_throw(journal::truncate_tail_after(folder(), "missing", 5)), 0u);
}

}  // namespace
}  // namespace troupe::launch::journal_faults
