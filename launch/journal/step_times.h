// StepTimes: how a step's time is divided, from the calls between the actors.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "actors/runtime/ask_record.h"
#include "algorithms/training/journal.h"

namespace troupe::launch::journal {

/// The parts of a step, first those that hide the ones after them.
enum class StepPart {
  update,
  update_critic,
  rollout,
  weights,
  save,
  eval,
  advantage,
  reference,
  reward,
  other
};
inline constexpr std::array<std::string_view, 10> part_names{
    "update", "update_critic", "rollout",   "weights", "save",
    "eval",   "advantage",     "reference", "reward",  "other"};
constexpr std::size_t index_of(StepPart part) {
  return static_cast<std::size_t>(part);
}

/// The part that a call belongs to, made during `activity`.
StepPart part_of(const actors::AskRecord& ask, algorithms::Activity activity);

struct StepSeconds {
  double all = 0;
  std::array<double, part_names.size()> parts{};  ///< their sum is `all`
  /// Time in which no other part was worked on: of work that overlaps, what is not hidden.
  std::array<double, part_names.size()> alone{};
};

/// Every moment of a step counts as one part: as the first part in their order among those whose
/// handlers run; else among those with a call that waits for its answer; else as the activity of
/// the algorithm. Times are in nanoseconds of the clock of AskRecord.
class StepTimes {
 public:
  void begin(std::int64_t now);
  void enter(algorithms::Activity activity, std::int64_t now);
  void answered(const actors::AskRecord& ask);
  /// Ends a step; the next one begins at `now`.
  StepSeconds end(std::int64_t now);

 private:
  struct Edge {
    std::int64_t at;
    std::uint16_t part;
    std::int8_t level;  ///< 2: a handler, 1: a call, 0: the algorithm
    std::int8_t change;
  };
  void add(std::int64_t from, std::int64_t to, StepPart part, std::int8_t level);
  void count(std::int64_t now);

  std::vector<Edge> edges_;
  StepSeconds sum_;
  std::int64_t began_ = 0, entered_ = 0;
  algorithms::Activity activity_ = algorithms::Activity::other;
};

}  // namespace troupe::launch::journal
