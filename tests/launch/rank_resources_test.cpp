// Threads per rank when train.threads is 0.
#include "launch/run/rank_resources.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace troupe::launch::rank_resources_test {
namespace {

/// Runs `visit` on a new thread that is bound to one processor.
template <class Visit>
void on_one_processor(Visit visit) {
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
    visit();
  }).join();
}

TEST(ThreadsPerRank, AreAnEqualPartOfTheProcessorsOfTheProcess) {
  const int usable = engine::usable_processors();
  EXPECT_EQ(run::part_of_process(1), usable);
  EXPECT_EQ(run::part_of_process(0), usable);
  EXPECT_EQ(run::part_of_process(2 * usable), 1);
  on_one_processor([] {
    EXPECT_EQ(engine::usable_processors(), 1);
    for (const int ranks : {1, 2, 100}) EXPECT_EQ(run::part_of_process(ranks), 1);
  });
}

TEST(ThreadsPerRank, AreLimitedToTheProcessorsThatTheProcessIsBoundTo) {
  EXPECT_GE(engine::all_processors(), engine::usable_processors());
  EXPECT_EQ(run::part_of_machine(engine::all_processors()), 1);
  on_one_processor([] { EXPECT_EQ(run::part_of_machine(1), 1); });
}

TEST(ThreadsPerRank, AreThoseOfTheConfigurationIfSet) {
  config::RunConfig config;
  EXPECT_EQ(run::cpu_of(config, 3).threads, 3);
  config.train.threads = 5;
  EXPECT_EQ(run::cpu_of(config, 3).threads, 5);
}

TEST(ThreadsPerRank, LeaveProcessorsToTheLaneOfTheRollouts) {
  config::RunConfig config;
  const int usable = engine::usable_processors();
  EXPECT_EQ(run::part_of_trainer(config), usable);
  config.rollout.threads = 1;
  EXPECT_EQ(run::part_of_trainer(config), std::max(1, usable - 1));
  EXPECT_EQ(run::part_of_process(1, run::part_of_trainer(config)), std::max(1, usable - 1));
  config.rollout.threads = usable + 5;
  EXPECT_EQ(run::part_of_trainer(config), 1);
  on_one_processor([&] { EXPECT_EQ(run::part_of_trainer(config), 1); });
}

}  // namespace
}  // namespace troupe::launch::rank_resources_test
