#include "engine/parallel/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "engine/base/text/text.h"

namespace troupe::engine::parallel {
namespace {

using enum PipelineWork;

TEST(PipelineSchedule, HasTheOrderOfThePaperForThreeStagesAndFourMicroBatches) {
  const auto passes = [](int stage) {
    std::string text;
    for (const auto& [work, micro_batch, unused] : one_forward_one_backward(3, stage, 4))
      if (work == forward || work == backward)
        text += (work == forward ? 'F' : 'B') + std::to_string(micro_batch);
    return text;
  };
  EXPECT_EQ(passes(0), "F0F1F2B0F3B1B2B3");
  EXPECT_EQ(passes(1), "F0F1B0F2B1F3B2B3");
  EXPECT_EQ(passes(2), "F0B0F1B1F2B2F3B3");
}

// Letters are chunks: "Fa0" is the forward pass of micro-batch 0 through the first one.
TEST(PipelineSchedule, InterleavesChunksInGroupsOfMicroBatches) {
  const auto passes = [](int stage, int micro_batches) {
    std::string text;
    for (const auto& [work, micro_batch, chunk] :
         one_forward_one_backward(2, stage, micro_batches, 2))
      if (work == forward || work == backward)
        text += cat(work == forward ? 'F' : 'B', "ab"[chunk], micro_batch, ' ');
    return text;
  };
  EXPECT_EQ(passes(0, 4), "Fa0 Fa1 Fb0 Fb1 Fa2 Bb0 Fa3 Bb1 Fb2 Ba0 Fb3 Ba1 Bb2 Bb3 Ba2 Ba3 ");
  EXPECT_EQ(passes(1, 4), "Fa0 Fa1 Fb0 Bb0 Fb1 Bb1 Fa2 Ba0 Fa3 Ba1 Fb2 Bb2 Fb3 Bb3 Ba2 Ba3 ");
  EXPECT_EQ(passes(0, 3), "Fa0 Fa1 Fb0 Fb1 Fa2 Bb0 Bb1 Fb2 Ba0 Ba1 Bb2 Ba2 ");
  EXPECT_EQ(passes(1, 1), "Fa0 Fb0 Bb0 Ba0 ");
}

TEST(PipelineSchedule, OneStageSendsNothing) {
  EXPECT_EQ(one_forward_one_backward(1, 0, 2),
            (PipelineSchedule{{forward, 0}, {backward, 0}, {forward, 1}, {backward, 1}}));
  EXPECT_EQ(forward_only(1, 0, 2), (PipelineSchedule{{forward, 0}, {forward, 1}}));
  EXPECT_TRUE(one_forward_one_backward(4, 2, 0).empty());
}

// Runs all stages: a stage that must wait for a message gives way to the others. A sender waits for
// the first of its messages of a kind to be received before it sends more than `capacity` of them.
class Simulation {
 public:
  Simulation(const std::vector<PipelineSchedule>& stages, int chunks, std::size_t capacity)
      : stages_(stages),
        chunks_(chunks),
        capacity_(capacity),
        at_(stages.size(), 0),
        active_(stages.size(), 0) {}

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
    return std::ranges::all_of(sent_, [](const auto& link) { return link.second.empty(); });
  }
  int max_active(std::size_t stage) const { return max_.at(stage); }

 private:
  using Link = std::pair<std::size_t, PipelineWork>;
  /// A micro-batch, and the sending chunk of all chunks of the model.
  using Message = std::pair<int, int>;

  bool step(std::size_t s, const PipelineOperation& operation) {
    const auto [work, micro_batch, chunk] = operation;
    const int count = static_cast<int>(stages_.size()), own = chunk * count + static_cast<int>(s);
    switch (work) {
      case send_activations:
      case send_gradients:
        if (sent_[{s, work}].size() == capacity_) return false;
        sent_[{s, work}].emplace_back(micro_batch, own);
        return true;
      case receive_activations:
        return receive({(s + stages_.size() - 1) % stages_.size(), send_activations},
                       {micro_batch, own - 1});
      case receive_gradients:
        EXPECT_LT(own + 1, count * chunks_);
        return receive({(s + 1) % stages_.size(), send_gradients}, {micro_batch, own + 1});
      case forward:
        max_[s] = std::max(max_[s], ++active_[s]);
        return true;
      case backward:
        --active_[s];
        return true;
    }
    return false;
  }
  bool receive(Link from, Message wanted) {
    auto& messages = sent_[from];
    if (messages.empty()) return false;
    EXPECT_EQ(messages.front(), wanted) << "a message of another pass";
    messages.pop_front();
    return true;
  }

  const std::vector<PipelineSchedule>& stages_;
  int chunks_;
  std::size_t capacity_;
  std::vector<std::size_t> at_;
  std::vector<int> active_;
  std::map<std::size_t, int> max_;
  std::map<Link, std::deque<Message>> sent_;
};

void expect_to_end(int p, int m, int chunks) {
  const std::size_t capacity = chunks == 1 ? 1 : static_cast<std::size_t>(p);
  std::vector<PipelineSchedule> stages, forwards;
  for (int s = 0; s < p; ++s) {
    stages.push_back(one_forward_one_backward(p, s, m, chunks));
    forwards.push_back(forward_only(p, s, m, chunks));
    EXPECT_EQ(std::ssize(forwards.back()),
              3 * m * chunks - (s == 0 ? m : 0) - (s == p - 1 ? m : 0));
  }
  Simulation both(stages, chunks, capacity), scoring(forwards, chunks, capacity);
  EXPECT_TRUE(both.run());
  EXPECT_TRUE(scoring.run());
  for (int s = 0; s < p; ++s)
    EXPECT_EQ(both.max_active(static_cast<std::size_t>(s)), max_passes_held(p, s, m, chunks));
}

TEST(PipelineSchedule, EveryMessageIsReceivedAndFewActivationsAreSaved) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 20; ++m)
      for (int chunks = 1; chunks <= (p == 1 ? 1 : 4); ++chunks) {
        SCOPED_TRACE(cat(p, " stages, ", m, " micro-batches, ", chunks, " chunks"));
        expect_to_end(p, m, chunks);
        for (int s = 0; s < p; ++s) {
          const int ahead = chunks == 1 ? p - s : 2 * (p - 1 - s) + (chunks - 1) * p + 1;
          const int held = max_passes_held(p, s, m, chunks), most = std::min(ahead, m * chunks);
          EXPECT_LE(held, most);
          // Groups that are not complete hold less.
          EXPECT_TRUE(held == most || (chunks > 1 && m % p != 0));
        }
      }
}

TEST(PipelineSchedule, PassesOfEachKindAreInTheOrderOfTheMicroBatches) {
  for (int s = 0; s < 4; ++s) {
    std::map<std::pair<PipelineWork, int>, int> next;
    for (const auto& [work, micro_batch, chunk] : one_forward_one_backward(4, s, 9, 3))
      EXPECT_EQ(micro_batch, (next[{work, chunk}]++));
    for (int chunk = 0; chunk < 3; ++chunk) {
      EXPECT_EQ((next[{forward, chunk}]), 9);
      EXPECT_EQ((next[{backward, chunk}]), 9);
    }
  }
}

TEST(PipelineSchedule, TheBubbleFallsWithTheMicroBatches) {
  EXPECT_EQ(bubble(1, 3), 0);
  EXPECT_DOUBLE_EQ(bubble(4, 1), 0.75);
  EXPECT_DOUBLE_EQ(bubble(2, 9), 0.1);
  EXPECT_DOUBLE_EQ(bubble(2, 3, 3), 0.1);
}

}  // namespace
}  // namespace troupe::engine::parallel
