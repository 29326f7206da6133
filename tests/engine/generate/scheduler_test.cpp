#include "engine/generate/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "engine/base/errors/check.h"

namespace troupe::engine::generate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(PagePool, TheLastHolderFreesAPage) {
  PagePool pool(2);
  EXPECT_EQ(pool.take(), 0);
  EXPECT_EQ(pool.take(), 1);
  EXPECT_THROW(pool.take(), Bug);
  pool.share(0);
  pool.release(0);
  EXPECT_EQ(pool.free_pages(), 0);
  pool.release(0);
  EXPECT_EQ(pool.free_pages(), 1);
  EXPECT_THROW(pool.release(0), Bug);
  EXPECT_EQ(pool.take(), 0);
}

/// A model of the cache: each slot remembers which text it was written for. Text is identified by
/// (prompt group, sequence, position): prompts of a group are the same text, outputs are each
/// sequence's own.
class Simulation {
 public:
  explicit Simulation(SchedulerConfig config)
      : config_(config), scheduler_(config), slots_(config.pages * config.page_size) {}

  void add(std::int32_t prompt, std::int32_t output, std::uint64_t group, bool scored = false) {
    sequences_[++number_] = {prompt, prompt, prompt + output, group, scored};
    scheduler_.add(number_, prompt, prompt + output, group);
    if (scored) scheduler_.score_prompt(number_, 1);
  }

  /// One step: copies, writes, and a check that every row sees its own text; then a new token for
  /// each that samples.
  ScheduledStep step() {
    ScheduledStep plan = scheduler_.plan();
    for (const PageCopy& copy : plan.copies) {
      for (int i = 0; i < config_.page_size; ++i)
        slots_[copy.to * config_.page_size + i] = slots_[copy.from * config_.page_size + i];
    }
    for (const std::uint64_t number : plan.preempted) {
      EXPECT_TRUE(std::ranges::none_of(plan.work, [&](const Work& work) {
        return work.sequence == number;
      })) << "preempted, yet at work";
    }
    std::set<std::size_t> written;
    std::int32_t rows = 0, scored = 0;
    for (const Work& work : plan.work) {
      const Sequence& s = sequences_.at(work.sequence);
      for (std::int32_t i = work.first; i < work.first + work.count; ++i) {
        scored += s.scored && i < s.prompt - 1;
        EXPECT_TRUE(written.insert(slot(work, i)).second) << "two rows write the same place";
        slots_[slot(work, i)] = text(work.sequence, i);
      }
      rows += work.count;
    }
    EXPECT_EQ(rows, plan.rows);
    EXPECT_LE(rows, config_.tokens_per_step);
    EXPECT_EQ(scored, plan.scored);
    EXPECT_LE(scored, config_.scored_per_step);
    EXPECT_LE(std::ssize(plan.work), config_.max_sequences);
    for (const Work& work : plan.work) {
      for (std::int32_t i = 0; i < work.first + work.count; ++i)
        EXPECT_EQ(slots_[slot(work, i)], text(work.sequence, i));
      finish_or_append(work);
    }
    ++steps_;
    return plan;
  }

  /// A step that fails after it has written anything to its rows.
  void fail_step() {
    const ScheduledStep plan = scheduler_.plan();
    for (const Work& work : plan.work)
      for (std::int32_t i = work.first; i < work.first + work.count; ++i)
        slots_[slot(work, i)] = Text{};
    scheduler_.undo(plan);
  }

  void run(std::int64_t limit = 100000) {
    while (scheduler_.size() > 0 && steps_ < limit) step();
    EXPECT_EQ(scheduler_.size(), 0U) << "the scheduler did not come to an end";
    EXPECT_EQ(scheduler_.free_pages(), config_.pages) << "pages leaked";
  }

  void cancel(std::uint64_t number) {
    if (sequences_.erase(number) > 0) scheduler_.finish(number);
  }
  Scheduler& scheduler() { return scheduler_; }
  std::int64_t steps() const { return steps_; }

 private:
  struct Sequence {
    std::int32_t prompt, length, limit;
    std::uint64_t group;
    bool scored;
  };
  using Text = std::array<std::uint64_t, 3>;

  std::size_t slot(const Work& work, std::int32_t position) const {
    return static_cast<std::size_t>(work.pages.at(position / config_.page_size)) *
               config_.page_size +
           position % config_.page_size;
  }
  Text text(std::uint64_t number, std::int32_t position) const {
    const Sequence& s = sequences_.at(number);
    const auto place = static_cast<std::uint64_t>(position) + 1;
    return position < s.prompt ? Text{s.group, 0, place} : Text{s.group, number, place};
  }
  void finish_or_append(const Work& work) {
    Sequence& s = sequences_.at(work.sequence);
    EXPECT_EQ(work.samples, work.first + work.count == s.length);
    if (!work.samples) return;
    scheduler_.append(work.sequence);
    if (++s.length == s.limit) cancel(work.sequence);
  }

  SchedulerConfig config_;
  Scheduler scheduler_;
  std::vector<Text> slots_;
  std::map<std::uint64_t, Sequence> sequences_;
  std::uint64_t number_ = 0;
  std::int64_t steps_ = 0;
};

TEST(Scheduler, APromptIsTakenInChunks) {
  Simulation s({.page_size = 4, .pages = 10, .max_sequences = 2, .tokens_per_step = 5});
  s.add(12, 2, 1);
  const ScheduledStep one = s.step(), two = s.step(), three = s.step(), four = s.step();
  EXPECT_EQ(one.work.at(0).count, 5);
  EXPECT_FALSE(one.work.at(0).samples);
  EXPECT_EQ(two.work.at(0).first, 5);
  EXPECT_EQ(three.work.at(0).count, 2);
  EXPECT_TRUE(three.work.at(0).samples);
  EXPECT_EQ(four.work.at(0).first, 12);
  s.run();
}

TEST(Scheduler, RunningSequencesDecodeWhileAPromptIsComputed) {
  Simulation s({.page_size = 4, .pages = 20, .max_sequences = 4, .tokens_per_step = 6});
  s.add(3, 9, 1);
  s.step();
  s.add(20, 2, 2);
  const ScheduledStep plan = s.step();
  ASSERT_EQ(plan.work.size(), 2U);
  EXPECT_EQ(plan.work[0].sequence, 1U);
  EXPECT_EQ(plan.work[0].count, 1);
  EXPECT_EQ(plan.work[1].count, 5);
  s.run();
}

TEST(Scheduler, SamplesOfOnePromptComputeItOnce) {
  Simulation s({.page_size = 4, .pages = 64, .max_sequences = 8, .tokens_per_step = 64});
  for (int i = 0; i < 4; ++i) s.add(10, 3, 7);
  const ScheduledStep first = s.step();
  ASSERT_EQ(first.work.size(), 1U) << "the others wait for the prompt";
  EXPECT_EQ(first.rows, 10);
  const ScheduledStep second = s.step();
  EXPECT_EQ(second.rows, 4) << "one row each: the prompt's last token for those that join";
  EXPECT_EQ(second.shared_pages, 3 * 2);
  EXPECT_EQ(second.copies.size(), 3U) << "the page that the prompt ends in is copied for each";
  EXPECT_EQ(s.scheduler().free_pages(), 64 - 2 - 4)
      << "two whole pages shared, one page of its own each";
  s.run();
}

TEST(Scheduler, WhoWaitsForAPromptKeepsItsPlace) {
  Simulation s({.page_size = 4, .pages = 64, .max_sequences = 2, .tokens_per_step = 64});
  s.add(8, 3, 1);
  s.add(8, 3, 1);
  s.add(8, 3, 2);
  EXPECT_EQ(s.step().work.size(), 1U);
  const ScheduledStep plan = s.step();
  ASSERT_EQ(plan.work.size(), 2U);
  EXPECT_EQ(plan.work[1].sequence, 2U);
  s.run();
}

TEST(Scheduler, TheYoungestGivesWayWhenPagesRunOut) {
  Simulation s({.page_size = 2, .pages = 4, .max_sequences = 3, .tokens_per_step = 16});
  s.add(2, 5, 1);
  s.add(2, 5, 2);
  s.step();
  std::vector<std::uint64_t> preempted;
  for (int i = 0; i < 4; ++i) {
    for (const std::uint64_t number : s.step().preempted) preempted.push_back(number);
  }
  EXPECT_THAT(preempted, ElementsAre(2));
  s.run();
}

TEST(Scheduler, NothingIsPreemptedWhileThereIsRoom) {
  Simulation s({.page_size = 4, .pages = 100, .max_sequences = 8, .tokens_per_step = 32});
  for (std::uint64_t i = 0; i < 20; ++i) s.add(5, 10, i);
  while (s.scheduler().size() > 0) ASSERT_THAT(s.step().preempted, IsEmpty());
}

TEST(Scheduler, TheLastPagesAreLeftToThoseThatRun) {
  Simulation s({.page_size = 4, .pages = 128, .max_sequences = 4, .tokens_per_step = 600});
  s.add(400, 2, 1);
  s.step();
  s.add(4 * 27, 2, 2);
  EXPECT_EQ(s.step().work.size(), 1U)
      << "28 pages are free, and two stay so while another sequence runs";
  EXPECT_EQ(s.step().work.at(0).sequence, 2U);
  s.run();
}

TEST(Scheduler, ACachedPromptIsComputedAgainAfterTheWeightsChange) {
  Simulation s({.page_size = 4, .pages = 100, .max_sequences = 8, .tokens_per_step = 32});
  s.add(5, 10, 1);
  s.step();
  s.step();
  s.scheduler().drop_cache();
  EXPECT_EQ(s.scheduler().free_pages(), 100);
  EXPECT_EQ(s.step().rows, 7);
  s.run();
}

TEST(Scheduler, ScoredRowsOfAllPromptsInAStepAreBounded) {
  Simulation s({.page_size = 4,
                .pages = 64,
                .max_sequences = 4,
                .tokens_per_step = 32,
                .scored_per_step = 3});
  s.add(6, 2, 1, true);
  s.add(5, 2, 2, true);
  s.add(20, 2, 3);
  const ScheduledStep one = s.step(), two = s.step();
  ASSERT_EQ(one.work.size(), 2U) << "the second one waits";
  EXPECT_EQ(one.work[0].count, 3);
  EXPECT_EQ(one.work[1].count, 20) << "not scored";
  ASSERT_EQ(two.work.size(), 3U);
  EXPECT_EQ(two.work[0].sequence, 3U) << "decodes";
  EXPECT_EQ(two.work[1].count, 3) << "two scored rows and the last one, which is sampled";
  EXPECT_EQ(two.work[2].count, 1);
  s.run();
}

TEST(Scheduler, SequencesThatCannotFitAreABug) {
  Scheduler s({.page_size = 4, .pages = 2, .max_sequences = 1, .tokens_per_step = 8});
  EXPECT_EQ(s.pages_for(9), 2) << "the last token is never fed";
  EXPECT_EQ(s.pages_for(10), 3);
  EXPECT_THROW(s.add(1, 5, 10, 1), Bug);
  s.add(1, 5, 9, 1);
}

/// Random mixes: page sizes, cache sizes, chunk sizes, arrivals during the run, shared prompts,
/// cancellations, dropped caches, failed steps.
TEST(Scheduler, EveryRowSeesItsOwnTextInRandomRuns) {
  std::int64_t preemptions = 0, copies = 0, shared = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<std::int32_t>(random() % n); };
    const std::int32_t page = 1 + below(6), maximum = 1 + below(6), longest = 30;
    const std::int32_t pages = (longest + page - 1) / page + below(40);
    Simulation s({.page_size = page,
                  .pages = pages,
                  .max_sequences = maximum,
                  .tokens_per_step = maximum + below(20),
                  .scored_per_step = 1 + below(8)});
    std::map<std::uint64_t, std::int32_t> prompt_of;
    std::uint64_t added = 0;
    for (int i = 0; i < 40 || s.scheduler().size() > 0; ++i) {
      if (i < 40 && below(2) == 0) {
        const std::uint64_t group = below(5);
        const std::int32_t prompt = prompt_of.try_emplace(group, 1 + below(15)).first->second;
        s.add(prompt, 1 + below(longest - prompt), group, below(3) == 0);
        ++added;
      }
      if (added > 0 && below(30) == 0) s.cancel(1 + random() % added);
      if (below(40) == 0) s.scheduler().drop_cache();
      while (s.scheduler().size() > 0 && below(10) == 0) s.fail_step();
      const ScheduledStep plan = s.step();
      preemptions += std::ssize(plan.preempted);
      copies += std::ssize(plan.copies);
      shared += plan.shared_pages;
      ASSERT_LT(i, 5000) << "no end in sight";
      ASSERT_FALSE(HasFailure()) << "seed " << seed;
    }
    s.run();
  }
  EXPECT_GT(preemptions, 100) << "these runs must preempt, or they show nothing";
  EXPECT_GT(copies, 100);
  EXPECT_GT(shared, 100);
}

}  // namespace
}  // namespace troupe::engine::generate
