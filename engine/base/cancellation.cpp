#include "engine/base/cancellation.h"

#include <atomic>

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
  return is_cancelled() ? Result<>(tl::unexpect, cancelled_error()) : Result<>();
}
void throw_if_cancelled() {
  if (is_cancelled()) throw Failure(cancelled_error());
}

}  // namespace troupe
