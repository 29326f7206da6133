#include "engine/parallel/pending.h"

#include <exception>
#include <utility>

#include "engine/base/text/text.h"

namespace troupe::engine::parallel {

Pending::Pending(std::unique_ptr<Operation> operation, std::string_view what)
    : operation_(std::move(operation)), what_(what) {
}

Pending::~Pending() {
  drop();
}

Pending& Pending::operator=(Pending&& other) noexcept {
  if (this == &other) return *this;
  drop();
  operation_ = std::move(other.operation_);
  what_ = std::move(other.what_);
  return *this;
}

void Pending::wait(std::optional<std::chrono::nanoseconds> deadline) {
  if (const auto operation = std::exchange(operation_, nullptr)) operation->finish(deadline);
}

void Pending::drop() noexcept {
  if (!operation_) return;
  if (std::uncaught_exceptions() == 0) {
    operation_->abandon(
        cat("'", what_, "' was started, but its handle was destroyed before it was waited for"));
    operation_.reset();
    return;
  }
  try {
    wait();
  } catch (const std::exception&) {
    // The exception that unwinds the stack is the cause, and the one to report.
  }
}

}  // namespace troupe::engine::parallel
