// Recorder: the spans of one rank in the profiled steps.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/text/spans.h"
#include "engine/ops/roofline.h"
#include "launch/profile/counters.h"

namespace troupe::launch::profile {

struct RecorderOptions {
  std::int64_t step_start = 10, step_end = 12;  ///< [start, end)
  bool stack = false, shapes = false;
  /// Events that are kept individually; later ones count in the sums only.
  std::size_t max_events = std::size_t{1} << 20;
};

/// Measurements of a recorder. `counts`, `busy` and `memory` are optional.
struct RecorderSources {
  std::function<std::int64_t()> step;             ///< the current step
  std::function<std::int64_t()> now;              ///< nanoseconds
  std::function<engine::ops::Ceiling()> ceiling;  ///< called once, before the first span
  std::function<Counts()> counts;                 ///< since an arbitrary time
  std::function<std::int64_t()> busy;             ///< CPU time of all threads in nanoseconds
  std::function<std::int64_t()> memory;           ///< bytes of all tensors
};

/// Measurements between two points in time.
struct Spent {
  std::int64_t nanoseconds = 0, busy = 0;
  Counts counts;
  Spent& operator+=(const Spent& more) {
    nanoseconds += more.nanoseconds;
    busy += more.busy;
    counts += more.counts;
    return *this;
  }
};

struct Event {
  SpanStart span;
  std::string stack;  ///< enclosing phases, "forward_backward/forward", if recorded
  std::int64_t step = 0, begin = 0;
  Spent spent;
  std::int64_t tensor_bytes = 0;  ///< at the end of the span
};

/// A row of the table: all spans of one name, and of one stack or shape if those are recorded.
struct Sum {
  SpanKind kind;
  std::string name, stack, shapes;
  std::int64_t calls = 0;
  Work work;
  double bound_seconds = 0;  ///< time of the same work at the ceiling
  Spent spent;
};

/// Time from the first span of a step to the end of its last.
struct StepTime {
  std::int64_t begin = 0, end = 0;
};

/// The rank of a recording.
struct RecordedRank {
  std::string name;  ///< "rank 0", "rollout-0 rank 1"
  int rank = 0;
  std::int64_t origin = 0;  ///< start of the trace in nanoseconds
};

class Recorder final : public Spans {
 public:
  /// `closed` is called once, when a step after the last one has begun and no span is open.
  Recorder(RecorderOptions options, RecorderSources sources,
           std::function<void(const Recorder&)> closed);

  bool recording() override;
  void begin(SpanStart span) override;
  void end() noexcept override;
  bool wants_shapes() const override { return options_.shapes; }

  /// Ends the recording at the end of the run. Drops open spans.
  void finish();

  const std::vector<Event>& events() const { return events_; }  ///< ordered by their ends
  std::int64_t dropped() const { return dropped_; }             ///< events beyond max_events
  std::vector<Sum> sums() const;                                ///< longest first
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
  std::int64_t sample_memory();
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

}  // namespace troupe::launch::profile
