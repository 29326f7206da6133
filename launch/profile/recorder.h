// Recorder: the spans of one rank in the steps that are profiled.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/spans.h"
#include "engine/ops/ceiling.h"
#include "launch/profile/counters.h"

namespace troupe::launch {

struct RecorderOptions {
  std::int64_t step_start = 10, step_end = 12;  ///< [start, end)
  bool stack = false, shapes = false;
  std::size_t most_events =
      std::size_t{1} << 20;  ///< that are kept one by one; what comes after them is still summed up
};

/// What a recorder reads. `counts`, `busy` and `memory` may be absent.
struct RecorderSources {
  std::function<std::int64_t()> step;             ///< the present one
  std::function<std::int64_t()> now;              ///< nanoseconds
  std::function<engine::ops::Ceiling()> ceiling;  ///< asked once, before the first span
  std::function<Counts()> counts;                 ///< since some moment
  std::function<std::int64_t()> busy;             ///< nanoseconds of processor time, of all threads
  std::function<std::int64_t()> memory;           ///< bytes of all tensors
};

/// What was measured between two moments.
struct Spent {
  std::int64_t nanoseconds = 0, busy = 0;
  Counts counts;
  Spent& operator+=(const Spent& more) {
    return nanoseconds += more.nanoseconds, busy += more.busy, counts += more.counts, *this;
  }
};

struct Event {
  SpanStart span;
  std::string stack;  ///< the phases around it, "forward_backward/forward", where they are wanted
  std::int64_t step = 0, begin = 0;
  Spent spent;
  std::int64_t tensor_bytes = 0;  ///< at its end
};

/// A row of the table: all spans of one name, and of one stack or one shape where those are
/// recorded.
struct Sum {
  SpanKind kind;
  std::string name, stack, shapes;
  std::int64_t calls = 0;
  Work work;
  double bound_seconds = 0;  ///< the ceiling's time for the same work
  Spent spent;
};

/// From the first span of a step to the end of its last.
struct StepTime {
  std::int64_t begin = 0, end = 0;
};

class Recorder final : public Spans {
 public:
  /// `closed` is called once, when a step after the last is under way and no span is open.
  Recorder(RecorderOptions options, RecorderSources sources,
           std::function<void(const Recorder&)> closed);

  bool recording() override;
  void begin(SpanStart span) override;
  void end() noexcept override;
  bool wants_shapes() const override { return options_.shapes; }

  /// The run is over: as if a later step had come. Spans that are still open are not in it.
  void finish();

  const std::vector<Event>& events() const { return events_; }  ///< in the order of their ends
  std::int64_t dropped() const { return dropped_; }             ///< events beyond most_events
  std::vector<Sum> sums() const;                                ///< the longest first
  const std::map<std::int64_t, StepTime>& steps() const { return steps_; }
  const engine::ops::Ceiling& ceiling() const { return ceiling_; }
  std::int64_t peak_tensor_bytes() const { return peak_; }
  bool has_busy() const { return static_cast<bool>(sources_.busy); }
  bool has_counts() const { return static_cast<bool>(sources_.counts); }
  bool has_memory() const { return static_cast<bool>(sources_.memory); }

 private:
  enum class State { before, within, after };
  struct Key {
    SpanKind kind;
    std::string name, stack, shapes;
    auto operator<=>(const Key&) const = default;
  };
  void close();
  std::int64_t look_at_memory();
  void add(const Event& event);

  RecorderOptions options_;
  RecorderSources sources_;
  std::function<void(const Recorder&)> closed_;
  State state_ = State::before;
  std::int64_t step_ = 0;
  engine::ops::Ceiling ceiling_;
  std::int64_t peak_ = 0, dropped_ = 0;
  std::vector<Event> open_, events_;
  std::map<Key, Sum> sums_;
  std::map<std::int64_t, StepTime> steps_;
};

}  // namespace troupe::launch
