// ConstraintTurns: the masks of constrained sequences, computed for a bounded time in each step.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/generate/scheduler.h"
#include "engine/generate/sequence_state.h"

namespace troupe::engine::generate {

class ConstraintTurns {
 public:
  /// `work`: of a step, in the units of Constraint::allowed(). `bytes`: of all constraints of the
  /// sequences.
  ConstraintTurns(std::uint64_t work, std::size_t bytes) : work_(work), bytes_(bytes) {}

  /// Computes the masks of the next tokens, and holds the sequences for which the work is not
  /// enough. Each step begins with the sequence behind the one where the step before ended. Throws
  /// RequestFailure: errors of a constraint, and Errc::bad_input for the sequence with the largest
  /// constraint when all need more bytes than allowed.
  void prepare(SequenceStates& sequences, Scheduler& scheduler);
  /// The work that is left for drafts.
  std::uint64_t& left() { return left_; }

 private:
  void check_bytes(const SequenceStates& sequences) const;

  std::uint64_t work_, left_ = 0;
  std::size_t bytes_;
  std::uint64_t last_ = 0;  // the sequence where a step ended
};

}  // namespace troupe::engine::generate
