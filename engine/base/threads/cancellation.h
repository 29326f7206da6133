// Cancellation of long reading: data, templates, tokenizers and weights before the first step.
#pragma once

#include "engine/base/errors/error.h"

namespace troupe {

/// While an object lives, the functions that read rows, encode texts, render templates and load
/// weights end with Errc::cancelled after cancel_reading(); at other times they ignore it, because
/// a step is always finished. At most one object at a time.
class CancellableReading {
 public:
  CancellableReading();
  ~CancellableReading();
  CancellableReading(const CancellableReading&) = delete;
  /// Ends the reading. Throws Failure (Errc::cancelled) if it was cancelled, also after the last
  /// check_cancelled().
  void end();
};

/// Requests cancellation. True if reading is in progress, and will end. May be called from a signal
/// handler.
bool cancel_reading() noexcept;

/// Errc::cancelled after the request, and the error of this thread's WorkBudget (work_budget.h) if
/// it has one. As cheap as reading two variables without one: for loops over rows, chunks and
/// tensors.
Result<> check_cancelled();
/// Throws Failure instead.
void throw_if_cancelled();

}  // namespace troupe
