#include "engine/jinja/meter.h"

#include "engine/base/errors/error.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/cancellation.h"

namespace troupe::engine::jinja {
namespace {

thread_local std::int64_t live_bytes_of_thread = 0;
thread_local Meter* current_meter = nullptr;

constexpr std::size_t bytes_per_step = 64;

[[noreturn]] void limit_exceeded(std::string what) {
  throw Failure({Errc::bad_input, std::move(what)});
}

}  // namespace

Meter::Meter(RuntimeLimits limits)
    : limits_(limits), live_before_(live_bytes_of_thread), outer_(current_meter) {
  current_meter = this;
}
Meter::~Meter() {
  current_meter = outer_;
}

void Meter::charge(std::size_t steps) {
  throw_if_cancelled();
  steps_ = steps > limits_.steps ? limits_.steps + 1 : steps_ + steps;
  if (steps_ > limits_.steps)
    limit_exceeded(cat("the template takes more than ", limits_.steps, " steps"));
}
void Meter::work(std::size_t bytes) {
  bytes_ += bytes % bytes_per_step;
  charge(bytes / bytes_per_step + bytes_ / bytes_per_step);
  bytes_ %= bytes_per_step;
}
void Meter::require_memory(std::size_t bytes) const {
  if (static_cast<std::int64_t>(bytes) > limits_.memory - (live_bytes_of_thread - live_before_))
    limit_exceeded(cat("the template's values take more than ", limits_.memory, " bytes"));
}

void work(std::size_t bytes) {
  if (current_meter) current_meter->work(bytes);
}
void require_text(std::size_t bytes) {
  if (current_meter && bytes > current_meter->limits().bytes)
    limit_exceeded(cat("a text of ", bytes, " bytes; at most ", current_meter->limits().bytes,
                       " are allowed"));
}

bool strict_template() {
  return current_meter && current_meter->limits().strict;
}

MemoryCount::MemoryCount(std::size_t bytes) : bytes_(static_cast<std::int64_t>(bytes)) {
  if (current_meter) current_meter->require_memory(bytes);
  live_bytes_of_thread += bytes_;
}
MemoryCount::~MemoryCount() {
  live_bytes_of_thread -= bytes_;
}

}  // namespace troupe::engine::jinja
