// Faults of the communicator under every schedule: a rank that is late, an operation that is lost,
// two that are exchanged, and one of the wrong length end the step of all ranks with an error that
// names the operation, or change nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <ostream>

#include "tests/support/faulty_step.h"

namespace troupe::test {
namespace {

using engine::parallel::HostileOptions;
using engine::train::Overlap;

/// A rank that waits for longer than this has an error. A slow machine makes more of them, which
/// the tests accept as well.
constexpr std::chrono::milliseconds deadline{40}, patient{60000};

GridModel deep_model(std::int64_t layers) {
  GridModel model = grid_models()[0];
  model.spec.layers = layers;
  return model;
}

struct Schedule {
  std::string name;
  FaultyStep step;
  std::int64_t first_call = 5;  ///< after the groups are made
};
void PrintTo(const Schedule& schedule, std::ostream* out) {
  *out << schedule.name;
}

class ScheduleFaults : public testing::TestWithParam<Schedule> {
 protected:
  /// Injects faults at `calls` calls of rank 1. At least one of them ends the step; the errors of
  /// all ranks then name an operation.
  void expect_named_errors(int calls,
                           const std::function<HostileOptions(std::int64_t call)>& fault) const {
    const auto& [name, step, first_call] = GetParam();
    int failed = 0;
    for (std::int64_t call = first_call; call < first_call + calls; ++call) {
      const auto errors = step.errors(1, fault(call), deadline, [this] { failed_.notify(); });
      failed_.reset();
      if (std::ranges::all_of(errors, [](const auto& each) { return each.second.empty(); }))
        continue;
      ++failed;
      for (const auto& [rank, error] : errors)
        EXPECT_THAT(error, testing::ContainsRegex("'[^']+'"))
            << "rank " << rank << ", call " << call;
    }
    EXPECT_GE(failed, 1) << "these faults show nothing";
  }

  /// Waits until another rank has failed, or has had time to.
  void wait_for_a_failure() const { failed_.wait(5 * deadline); }

 private:
  class Signal {
   public:
    void notify() {
      const std::lock_guard lock(mutex_);
      set_ = true;
      changed_.notify_all();
    }
    void reset() {
      const std::lock_guard lock(mutex_);
      set_ = false;
    }
    void wait(std::chrono::milliseconds at_most) {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, at_most, [this] { return set_; });
    }

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool set_ = false;
  };
  mutable Signal failed_;
};

TEST_P(ScheduleFaults, PausesEndWell) {
  for (const auto& [rank, error] : GetParam().step.errors(1, {.seed = 1, .max_yields = 4}, patient))
    EXPECT_EQ(error, "") << rank;
}

TEST_P(ScheduleFaults, ALateRankIsNamedOnEveryRank) {
  expect_named_errors(3, [this](std::int64_t call) {
    return HostileOptions{.stall_at = call, .stall = [this] { wait_for_a_failure(); }};
  });
}

TEST_P(ScheduleFaults, ALostOperationIsNamedOnEveryRank) {
  expect_named_errors(5, [](std::int64_t call) { return HostileOptions{.lose_at = call}; });
}

TEST_P(ScheduleFaults, ExchangedOperationsAreNamedOnEveryRankOrEndWell) {
  const auto& [name, step, first_call] = GetParam();
  for (std::int64_t call = first_call; call < first_call + 6; ++call) {
    const auto errors = step.errors(1, {.swap_at = call}, deadline);
    const bool well = std::ranges::all_of(errors, [](const auto& e) { return e.second.empty(); });
    EXPECT_TRUE(well || all_failed_with(errors, testing::ContainsRegex("'[^']+'"))) << call;
  }
}

TEST_P(ScheduleFaults, AWrongLengthIsNamedOnEveryRank) {
  expect_named_errors(6, [](std::int64_t call) { return HostileOptions{.shorten_at = call}; });
}

std::vector<Schedule> schedules() {
  const GridModel small = grid_models()[0], deep = deep_model(6);
  return {
      {"OneForwardOneBackward", {.model = deep, .grid = {.pp = 3}}},
      {"Interleaved", {.model = deep, .grid = {.pp = 2}, .chunks = 2}, 7},
      {"InterleavedOverThree", {.model = deep, .grid = {.pp = 3}, .chunks = 2}, 7},
      {"ForwardPasses", {.model = deep, .grid = {.pp = 3}, .scores = true}},
      {"InterleavedForwardPasses",
       {.model = deep, .grid = {.pp = 2}, .chunks = 3, .scores = true},
       7},
      {"Ring", {.model = small, .grid = {.cp = 3}}, 8},
      {"Ulysses", {.model = small, .grid = {.cp = 3}, .ulysses = 3}, 8},
      {"Hybrid", {.model = small, .grid = {.cp = 4}, .ulysses = 2}, 9},
      // Sums of more than 4096 values are non-blocking operations.
      {"Matrices", {.model = small, .grid = {.tp = 2}, .sequences = 40, .micro_batch_tokens = 600}},
      {"Rows", {.model = small, .grid = {.tp = 2}, .divides_rows = true}},
      {"GradientsDuringPasses", {.model = small, .grid = {.dp = 3}, .overlap = Overlap::gradients}},
      {"DividedOptimizer", {.model = small, .grid = {.dp = 3}, .zero = true}},
      {"WeightsDuringPasses",
       {.model = small, .grid = {.dp = 3}, .zero = true, .overlap = Overlap::all}},
  };
}
INSTANTIATE_TEST_SUITE_P(All, ScheduleFaults, testing::ValuesIn(schedules()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace troupe::test
