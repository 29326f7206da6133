#include "engine/base/threads/cancellation.h"

#include <atomic>

#include "engine/base/threads/work_budget.h"

namespace troupe {
namespace {

enum State : int { idle, reading, cancelled };
std::atomic<int> state{idle};

bool is_cancelled() {
  return state.load(std::memory_order_relaxed) == cancelled;
}
Error cancelled_error() {
  return {Errc::cancelled, "interrupted before the first step"};
}

}  // namespace

CancellableReading::CancellableReading() {
  state = reading;
}
CancellableReading::~CancellableReading() {
  state = idle;
}

void CancellableReading::end() {
  if (state.exchange(idle) == cancelled) throw Failure(cancelled_error());
}

bool cancel_reading() noexcept {
  int expected = reading;
  return state.compare_exchange_strong(expected, cancelled) || expected == cancelled;
}

Result<> check_cancelled() {
  if (is_cancelled()) return Result<>(tl::unexpect, cancelled_error());
  const WorkBudget* budget = WorkBudget::of_this_thread();
  return budget == nullptr ? Result<>() : budget->check();
}
void throw_if_cancelled() {
  value_or_throw(check_cancelled());
}

}  // namespace troupe
