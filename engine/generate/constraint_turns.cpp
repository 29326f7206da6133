#include "engine/generate/constraint_turns.h"

#include <set>

#include "engine/base/text/text.h"
#include "engine/constraints/constraint.h"

namespace troupe::engine::generate {

void ConstraintTurns::check_bytes(const SequenceStates& sequences) const {
  std::set<const constraints::Constraint*> seen;
  const SequenceState* largest = nullptr;
  std::size_t sum = 0;
  for (const auto& [number, state] : sequences) {
    const constraints::Constraint* each = state.request.constraint.get();
    if (each == nullptr || !seen.insert(each).second) continue;
    sum += each->bytes();
    if (largest == nullptr || each->bytes() > largest->request.constraint->bytes())
      largest = &state;
  }
  if (sum <= bytes_) return;
  throw RequestFailure(
      largest->request.id,
      {Errc::bad_input, cat("the constraints of all requests need more than ", bytes_ >> 20,
                            " MiB, and that of this one needs ",
                            largest->request.constraint->bytes() >> 20, "; simplify it")});
}

void ConstraintTurns::prepare(SequenceStates& sequences, Scheduler& scheduler) {
  left_ = work_;
  bool computes = false;
  auto each = sequences.upper_bound(last_);
  for (std::size_t n = 0; n < sequences.size(); ++n) {
    if (each == sequences.end()) each = sequences.begin();
    const std::uint64_t number = each->first;
    SequenceState& state = (each++)->second;
    if (!state.constraint.constrains() || !state.request.generates) continue;
    const std::uint64_t before = left_;
    try {
      scheduler.hold(number, !state.constraint.prepare(left_));
    } catch (const Failure& failure) {
      throw RequestFailure(state.request.id, failure.error());
    }
    computes = computes || left_ < before;
    if (before > 0 && left_ == 0) last_ = number;
  }
  if (computes) check_bytes(sequences);
}

}  // namespace troupe::engine::generate
