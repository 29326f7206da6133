// Threads without progress are found, named once, and end the process at a limit.
#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <mutex>
#include <thread>

#include "engine/base/hangs/hang_detector.h"
#include "engine/base/hangs/hang_watch.h"
#include "engine/base/hangs/rank_wait.h"
#include "engine/base/threads/progress.h"

namespace troupe::progress {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

/// Reads made-up threads every half second.
class Detection : public testing::Test {
 protected:
  HangDetector::Found after(std::chrono::milliseconds time,
                            const std::vector<ThreadLook>& threads) {
    HangDetector::Found all;
    for (auto passed = 0ms; passed < time; passed += 500ms) {
      auto found = detector_.look(threads, now_ += 500ms);
      all.began.insert(all.began.end(), found.began.begin(), found.began.end());
      all.ended.insert(all.ended.end(), found.ended.begin(), found.ended.end());
      all.longest = found.longest;
    }
    return all;
  }
  HangDetector detector_{20s};
  Stillness::Time now_{};
};

TEST_F(Detection, NamesAThreadOnceAfterTwentySeconds) {
  ThreadLook thread{.id = 1, .name = "process/policy", .operation = "'train_step'", .works = true};
  EXPECT_TRUE(after(20s, {thread}).began.empty());
  const auto found = after(100s, {thread});
  ASSERT_EQ(found.began.size(), 1);
  EXPECT_THAT(describe(found.began[0]), MatchesRegex("process/policy .thread 0. has made no "
                                                     "progress for 20 s in 'train_step'"));
  EXPECT_THAT(describe({.name = "rank 1", .length = 20s}),
              HasSubstr("for 20 s and has not begun its next job"));
  thread.finished = 1;
  EXPECT_EQ(after(500ms, {thread}).ended.size(), 1);
  EXPECT_EQ(after(21s, {thread}).began.size(), 1) << "the next hang is reported again";
  EXPECT_EQ(after(500ms, {}).ended.size(), 1) << "a thread that ended does not hang";
}

TEST_F(Detection, AStepOfAnyLengthThatAdvancesIsNone) {
  ThreadLook thread{.id = 1, .name = "process/policy", .works = true};
  for (int i = 0; i < 200; ++i) {
    ++thread.finished;
    EXPECT_TRUE(after(19s, {thread}).began.empty());
  }
}

TEST_F(Detection, AThreadWithoutWorkAndTheTimeOfAStoppedProcessDoNotCount) {
  ThreadLook thread{.id = 1, .works = false};
  EXPECT_TRUE(after(60s, {thread}).began.empty());
  thread.works = true;
  after(1s, {thread});
  now_ += 1h;  // SIGSTOP and SIGCONT of this process
  EXPECT_TRUE(after(15s, {thread}).began.empty());
}

TEST_F(Detection, AThreadOfAPoolIsNamedAfterTheOneThatWaitsForIt) {
  const int pool = 0;
  const std::vector<ThreadLook> threads{
      {.id = 1, .name = "rank 1", .operation = "'score'", .works = true, .waits_for = &pool},
      {.id = 2, .name = "engine thread 3", .works = true, .pool = &pool},
      {.id = 3, .name = "engine thread 4", .works = false, .pool = &pool}};
  const auto found = after(30s, threads);
  ASSERT_EQ(found.began.size(), 1);
  EXPECT_THAT(describe(found.began[0]),
              AllOf(StartsWith("engine thread 3 of rank 1 "), HasSubstr(" in 'score'")));
  // Stopped between two items: no thread of the pool works, and its caller is named.
  const auto caller = after(30s, {threads[0], threads[2]});
  ASSERT_EQ(caller.began.size(), 1);
  EXPECT_THAT(describe(caller.began[0]), HasSubstr("where it waits for its engine threads"));
}

TEST_F(Detection, OnlyWhatOthersCannotTakeOverCountsForTheLimit) {
  EXPECT_EQ(after(30s, {{.id = 1, .works = true, .pool = this}}).longest, 0s);
  EXPECT_GE(after(30s, {{.id = 2, .works = true}}).longest, 29s);
}

ThreadLook look_of(const std::string& name) {
  for (const ThreadLook& look : look_at_threads())
    if (look.name == name) return look;
  return {};
}

TEST(Progress, KnowsWhatAThreadDoes) {
  Jobs jobs;
  const ThreadScope scope("a thread", &jobs);
  EXPECT_FALSE(look_of("a thread").works);
  jobs.posted = 1;
  EXPECT_TRUE(look_of("a thread").works) << "a job that has not begun";
  const Operation step("'train_step'"), same("'train_step'"), inner("the outcome");
  EXPECT_EQ(look_of("a thread").operation, "'train_step': the outcome");
  const auto before = look_of("a thread").finished, all = total_pieces();
  advance();
  EXPECT_EQ(look_of("a thread").finished, before + 1);
  EXPECT_EQ(total_pieces(), all + 1);
  {
    const Wait wait;
    EXPECT_FALSE(look_of("a thread").works);
  }
  EXPECT_TRUE(look_of("a thread").works);
}

TEST(Progress, CountsThePiecesOfThreadsThatHaveEnded) {
  const auto before = total_pieces();
  std::thread([] {
    const ThreadScope scope("a short thread");
    for (int i = 0; i < 10; ++i) advance();
  }).join();
  EXPECT_GE(total_pieces(), before + 10);
  EXPECT_EQ(look_of("a short thread").id, 0);
}

/// A thread that works on something until the object is destroyed.
class Hanging {
 public:
  Hanging()
      : thread_([this] {
          const ThreadScope scope("a hanging thread");
          const Operation operation("'an operation'");
          end_.get_future().wait();
        }) {}
  ~Hanging() {
    end_.set_value();
    thread_.join();
  }

 private:
  std::promise<void> end_;
  std::thread thread_;
};

TEST(HangWatch, KeepsAHangUntilItIsOver) {
  const HangWatch watch({.process = "rank 7: ", .warn_after = 20ms, .interval = 1ms});
  {
    const Hanging hanging;
    while (hangs().empty()) std::this_thread::yield();
    EXPECT_THAT(hangs(), AllOf(StartsWith("rank 7: a hanging thread (thread "),
                               HasSubstr(hang_words), HasSubstr("in 'an operation'")));
  }
  while (!hangs().empty()) std::this_thread::yield();
}

TEST(HangWatch, EndsTheProcessAtTheLimit) {
  std::promise<std::string> ended;
  std::once_flag once;
  const HangWatch watch(
      {.warn_after = 20ms,
       .limit = 40ms,
       .end_process =
           [&](const std::string& why) { std::call_once(once, [&] { ended.set_value(why); }); },
       .interval = 1ms});
  const Hanging hanging;
  EXPECT_THAT(ended.get_future().get(), HasSubstr("a hanging thread"));
}

TEST(HangWatch, EndsAProcessThatDoesNotEndAfterADeadline) {
  std::promise<std::string> ended;
  std::once_flag once;
  const HangWatch watch(
      {.end_process =
           [&](const std::string& why) { std::call_once(once, [&] { ended.set_value(why); }); },
       .interval = 1ms});
  end_process_after(1ms, "the cause");
  end_process_after(0ms, "what follows from it");
  EXPECT_EQ(ended.get_future().get(), "the cause");
}

TEST(RankWait, WarnsIfTheOtherRanksDoNotAdvanceAndOnlyOnce) {
  struct Calls {
    int begun = 0, ended = 0, warned = 0, removed = 0;
    std::string text;
  };
  static Calls calls;
  calls = {};
  const WaitReports reports{
      .total_pieces = total_pieces,
      .begin_wait = [] { ++calls.begun; },
      .end_wait = [] { ++calls.ended; },
      .add_hang =
          [](const std::string&, const std::string& text) {
            ++calls.warned;
            calls.text = text;
          },
      .remove_hang = [](const std::string&, const std::string&) { ++calls.removed; }};
  RankWait::Time now{};
  {
    RankWait wait(reports, 20s, 0, "gradients", now);
    EXPECT_FALSE(wait.due(now += 900ms));
    for (std::uint64_t progress = 0; progress < 60; ++progress) {
      ASSERT_TRUE(wait.due(now += 1s));
      wait.look("rank 2", progress, now);
    }
    EXPECT_EQ(calls.warned, 0) << "they advance";
    for (int i = 0; i < 60; ++i) wait.look("rank 2", 60, now += 1s);
    EXPECT_EQ(calls.warned, 1);
    EXPECT_EQ(calls.text,
              "rank 2 has made no progress for 22 s; rank 0 waits for it in 'gradients'");
  }
  EXPECT_EQ(calls.begun, 1);
  EXPECT_EQ(calls.ended, 1);
  EXPECT_EQ(calls.removed, 1);
}

}  // namespace
}  // namespace troupe::progress
