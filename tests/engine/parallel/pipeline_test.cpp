#include "engine/parallel/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace troupe::engine::parallel {
namespace {

using enum PipelineWork;

TEST(PipelineSchedule, HasTheOrderOfThePaperForThreeStagesAndFourMicroBatches) {
  const auto passes = [](int stage) {
    std::string text;
    for (const auto& [work, micro_batch] : one_forward_one_backward(3, stage, 4))
      if (work == forward || work == backward)
        text += (work == forward ? 'F' : 'B') + std::to_string(micro_batch);
    return text;
  };
  EXPECT_EQ(passes(0), "F0F1F2B0F3B1B2B3");
  EXPECT_EQ(passes(1), "F0F1B0F2B1F3B2B3");
  EXPECT_EQ(passes(2), "F0B0F1B1F2B2F3B3");
}

TEST(PipelineSchedule, OneStageSendsNothing) {
  EXPECT_EQ(one_forward_one_backward(1, 0, 2),
            (PipelineSchedule{{forward, 0}, {backward, 0}, {forward, 1}, {backward, 1}}));
  EXPECT_EQ(forward_only(1, 0, 2), (PipelineSchedule{{forward, 0}, {forward, 1}}));
  EXPECT_TRUE(one_forward_one_backward(4, 2, 0).empty());
}

// Runs all stages: a stage that must wait for a message gives way to the others. A sender waits for
// its earlier message of the same kind to be received before it sends the next one.
class Simulation {
 public:
  explicit Simulation(const std::vector<PipelineSchedule>& stages)
      : stages_(stages), at_(stages.size(), 0), active_(stages.size(), 0) {}

  /// Whether every stage reaches its end.
  bool run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < stages_.size(); ++s)
        while (at_[s] < stages_[s].size() && step(s, stages_[s][at_[s]])) {
          ++at_[s];
          moved = true;
        }
    }
    for (std::size_t s = 0; s < stages_.size(); ++s)
      if (at_[s] < stages_[s].size()) return false;
    return sent_.empty();
  }
  int max_active(std::size_t stage) const { return max_.at(stage); }

 private:
  using Link = std::pair<std::size_t, PipelineWork>;

  bool step(std::size_t s, const PipelineOperation& operation) {
    const auto [work, micro_batch] = operation;
    switch (work) {
      case send_activations:
      case send_gradients:
        return sent_.emplace(Link(s, work), micro_batch).second;
      case receive_activations:
        return receive({s - 1, send_activations}, micro_batch);
      case receive_gradients:
        return receive({s + 1, send_gradients}, micro_batch);
      case forward:
        max_[s] = std::max(max_[s], ++active_[s]);
        return true;
      case backward:
        --active_[s];
        return true;
    }
    return false;
  }
  bool receive(Link from, int micro_batch) {
    const auto found = sent_.find(from);
    if (found == sent_.end()) return false;
    EXPECT_EQ(found->second, micro_batch) << "a message of another micro-batch";
    sent_.erase(found);
    return true;
  }

  const std::vector<PipelineSchedule>& stages_;
  std::vector<std::size_t> at_;
  std::vector<int> active_;
  std::map<std::size_t, int> max_;
  std::map<Link, int> sent_;
};

TEST(PipelineSchedule, EveryMessageIsReceivedAndFewActivationsAreSaved) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 20; ++m) {
      std::vector<PipelineSchedule> stages, forwards;
      for (int s = 0; s < p; ++s) {
        stages.push_back(one_forward_one_backward(p, s, m));
        forwards.push_back(forward_only(p, s, m));
      }
      Simulation both(stages), scoring(forwards);
      EXPECT_TRUE(both.run()) << p << " stages, " << m << " micro-batches";
      EXPECT_TRUE(scoring.run()) << p << " stages, " << m << " micro-batches";
      for (int s = 0; s < p; ++s)
        EXPECT_EQ(both.max_active(static_cast<std::size_t>(s)), std::min(p - s, m));
    }
}

TEST(PipelineSchedule, PassesOfEachKindAreInTheOrderOfTheMicroBatches) {
  for (int s = 0; s < 4; ++s) {
    std::map<PipelineWork, int> next;
    for (const auto& [work, micro_batch] : one_forward_one_backward(4, s, 9))
      EXPECT_EQ(micro_batch, next[work]++);
    EXPECT_EQ(next[forward], 9);
    EXPECT_EQ(next[backward], 9);
  }
}

TEST(PipelineSchedule, TheBubbleFallsWithTheMicroBatches) {
  EXPECT_EQ(bubble(1, 3), 0);
  EXPECT_DOUBLE_EQ(bubble(4, 1), 0.75);
  EXPECT_DOUBLE_EQ(bubble(2, 9), 0.1);
}

}  // namespace
}  // namespace troupe::engine::parallel
