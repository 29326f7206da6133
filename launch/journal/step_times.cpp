#include "launch/journal/step_times.h"

#include <algorithm>

#include "actors/protocol/generate.h"
#include "actors/protocol/reward.h"
#include "actors/protocol/train.h"

namespace troupe::launch::journal {

namespace {

namespace protocol = actors::protocol;
using algorithms::Activity;

// Edges that are kept. A longer step, such as the scoring of a whole data set, is counted in
// pieces.
constexpr std::size_t max_edges = std::size_t{1} << 16;

// The calls and handlers that run between two edges: how many of each part, on each level.
struct Running {
  std::array<std::array<int, part_names.size()>, 3> count{};

  /// Adds the time to the part that it counts as.
  void spend(double seconds, StepSeconds& sum) const {
    for (std::size_t level = count.size(); level-- > 0;) {
      const auto& parts = count[level];
      const auto first = std::ranges::find_if(parts, [](int n) { return n > 0; });
      if (first == parts.end()) continue;
      const auto part = static_cast<std::size_t>(first - parts.begin());
      sum.parts[part] += seconds;
      if (std::find_if(first + 1, parts.end(), [](int n) { return n > 0; }) == parts.end())
        sum.alone[part] += seconds;
      return;
    }
    sum.parts[index_of(StepPart::other)] += seconds;
  }
};

}  // namespace

StepPart part_of(const actors::AskRecord& ask, Activity activity) {
  if (activity == Activity::evaluation) return StepPart::eval;
  const std::string_view type = ask.type;
  const bool critic = ask.by.actor == "critic";
  if (type == protocol::TrainStep::name) return critic ? StepPart::update_critic : StepPart::update;
  if (type == protocol::Generate::name) return StepPart::rollout;
  if (type == protocol::ComputeRewards::name) return StepPart::reward;
  if (type == protocol::Save::name || type == protocol::FinishSave::name) return StepPart::save;
  for (const auto name :
       {protocol::Publish::name, protocol::ReadWeights::name, protocol::LoadWeights::name,
        protocol::MapWeights::name, protocol::PrepareWeights::name, protocol::CommitWeights::name,
        protocol::MixWeights::name})
    if (type == name) return StepPart::weights;
  if (type == protocol::Logprobs::name || type == protocol::Score::name)
    return critic || activity == Activity::advantage ? StepPart::advantage : StepPart::reference;
  return StepPart::other;
}

void StepTimes::begin(std::int64_t now) {
  edges_.clear();
  sum_ = {};
  began_ = entered_ = now;
}

void StepTimes::add(std::int64_t from, std::int64_t to, StepPart part, std::int8_t level) {
  from = std::max(from, began_);
  if (from >= to) return;
  const auto index = static_cast<std::uint16_t>(part);
  edges_.push_back({from, index, level, 1});
  edges_.push_back({to, index, level, -1});
}

void StepTimes::enter(Activity activity, std::int64_t now) {
  if (activity_ == Activity::advantage) add(entered_, now, StepPart::advantage, 0);
  if (activity_ == Activity::evaluation) add(entered_, now, StepPart::eval, 0);
  activity_ = activity;
  entered_ = now;
}

void StepTimes::answered(const actors::AskRecord& ask) {
  const StepPart part = part_of(ask, activity_);
  add(ask.asked, ask.answered, part, 1);
  if (ask.began > 0) add(ask.began, ask.ended, part, 2);
  if (edges_.size() >= max_edges) count(ask.answered);
}

// Adds up the time from began_ to `now`.
void StepTimes::count(std::int64_t now) {
  std::ranges::sort(edges_, {}, &Edge::at);
  Running running;
  std::int64_t at = began_;
  for (const Edge& edge : edges_) {
    const std::int64_t until = std::min(edge.at, now);
    if (until > at) running.spend(static_cast<double>(until - at) * 1e-9, sum_);
    at = std::max(at, until);
    running.count[static_cast<std::size_t>(edge.level)][edge.part] += edge.change;
  }
  if (now > at) running.spend(static_cast<double>(now - at) * 1e-9, sum_);
  sum_.all += static_cast<double>(now - began_) * 1e-9;
  edges_.clear();
  began_ = now;
}

StepSeconds StepTimes::end(std::int64_t now) {
  enter(activity_, now);
  count(now);
  return std::exchange(sum_, {});
}

}  // namespace troupe::launch::journal
