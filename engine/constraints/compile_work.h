// CompileWork: a bound on the work of one constraint's compilation.
#pragma once

#include <cstdint>

#include "engine/base/cancellation.h"

namespace troupe::engine::constraints {

/// Counts steps that cost about the same, so that the bound does not depend on the load of the
/// machine; now and then it polls the cancellation and the deadline of this thread's work.
class CompileWork {
 public:
  explicit CompileWork(std::uint64_t units) : left_(units) {}

  /// Throws Failure: Errc::full when the units are used up, errors of check_cancelled().
  void spend(std::uint64_t units) {
    if (units > left_) {
      left_ = 0;
      throw Failure(
          Error{Errc::full, "the constraint takes more work than is allowed; simplify it"});
    }
    left_ -= units;
    until_poll_ -= static_cast<std::int64_t>(units);
    if (until_poll_ > 0) return;
    until_poll_ = poll_period;
    throw_if_cancelled();
  }

 private:
  static constexpr std::int64_t poll_period = 10'000;

  std::uint64_t left_;
  std::int64_t until_poll_ = poll_period;
};

}  // namespace troupe::engine::constraints
