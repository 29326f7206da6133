#include "launch/profile/recorder.h"

#include <algorithm>

namespace troupe::launch::profile {

Recorder::Recorder(RecorderOptions options, RecorderSources sources,
                   std::function<void(const Recorder&)> closed)
    : options_(options), sources_(std::move(sources)), closed_(std::move(closed)) {
}

bool Recorder::recording() {
  if (!open_.empty()) return true;  // spans of a profiled step are recorded to their end
  if (state_ == State::after) return false;
  const std::int64_t step = sources_.step();
  if (step >= options_.step_end && state_ == State::within) close();
  if (step < options_.step_start || step >= options_.step_end) return false;
  if (state_ == State::before) {
    ceiling_ = sources_.ceiling();
    state_ = State::within;
  }
  step_ = step;
  return true;
}

void Recorder::begin(SpanStart span) {
  Event event{.span = std::move(span), .step = step_};
  if (options_.stack)
    for (const Event& around : open_)
      event.stack.append(event.stack.empty() ? "" : "/").append(around.span.name);
  sample_memory();
  // Time is read last here and first in end(), to exclude the other measurements.
  if (sources_.busy) event.spent.busy = sources_.busy();
  if (sources_.counts) event.spent.counts = sources_.counts();
  event.begin = sources_.now();
  open_.push_back(std::move(event));
}

void Recorder::end() noexcept {
  const std::int64_t now = sources_.now();
  Event event = std::move(open_.back());
  open_.pop_back();
  if (sources_.counts) event.spent.counts = sources_.counts() - event.spent.counts;
  if (sources_.busy) event.spent.busy = sources_.busy() - event.spent.busy;
  event.spent.nanoseconds = now - event.begin;
  event.tensor_bytes = sample_memory();
  const auto [time, fresh] = steps_.try_emplace(event.step, StepTime{event.begin, now});
  time->second.begin = std::min(time->second.begin, event.begin);
  time->second.end = std::max(time->second.end, now);
  add(event);
  if (events_.size() < options_.max_events)
    events_.push_back(std::move(event));
  else
    ++dropped_;
}

std::int64_t Recorder::sample_memory() {
  const std::int64_t bytes = sources_.memory ? sources_.memory() : 0;
  peak_ = std::max(peak_, bytes);
  return bytes;
}

void Recorder::add(const Event& event) {
  const SpanStart& span = event.span;
  const bool op = span.kind == SpanKind::op;
  Key key{span.kind, std::string(span.name), event.stack, op ? span.detail : std::string()};
  const Sum none{.kind = span.kind,
                 .name = key.name,
                 .stack = key.stack,
                 .shapes = key.shapes,
                 .work = {},
                 .spent = {}};
  Sum& sum = sums_.try_emplace(key, none).first->second;
  ++sum.calls;
  sum.work.flops += span.work.flops;
  sum.work.bytes += span.work.bytes;
  sum.work.bf16 |= span.work.bf16;
  if (op) sum.bound_seconds += ceiling_.seconds(span.work);
  sum.spent += event.spent;
}

std::vector<Sum> Recorder::sums() const {
  std::vector<Sum> all;
  for (const auto& [key, sum] : sums_) all.push_back(sum);
  std::ranges::stable_sort(
      all, [](const Sum& a, const Sum& b) { return a.spent.nanoseconds > b.spent.nanoseconds; });
  return all;
}

void Recorder::close() {
  state_ = State::after;
  closed_(*this);
}

void Recorder::finish() {
  if (state_ == State::within) close();
}

}  // namespace troupe::launch::profile
