// Spans: the interface through which devices, communicators and the phases of a step report their
// activity to a profiler. Names are literals: they are not copied. Without a profiler nothing is
// called.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

enum class SpanKind : std::uint8_t { phase, op, communication };

/// Amount of work, computed from sizes: floating-point operations of the products, and bytes if
/// each operand is moved once.
struct Work {
  double flops = 0;
  double bytes = 0;
  bool bf16 = false;  ///< inputs of the products are rounded to bf16
};

struct SpanStart {
  SpanKind kind = SpanKind::phase;
  std::string_view name;
  Work work = {};
  std::string detail = {};  ///< an operator's shapes, or the purpose of a communication
};

/// The spans of one rank, used by one thread at a time. Spans nest: end() ends the last one begun.
class Spans {
 public:
  virtual ~Spans() = default;
  /// Whether the next span is recorded. May change only between outermost spans.
  virtual bool recording() = 0;
  virtual void begin(SpanStart span) = 0;
  virtual void end() noexcept = 0;

  virtual bool wants_shapes() const = 0;
};

/// Records a span from construction to destruction. `describe` returns its SpanStart and is called
/// only if the span is recorded.
class ScopedSpan {
 public:
  template <class Describe>
  ScopedSpan(Spans* spans, const Describe& describe)
      : spans_(spans != nullptr && spans->recording() ? spans : nullptr) {
    if (spans_) spans_->begin(describe());
  }
  ~ScopedSpan() {
    if (spans_) spans_->end();
  }
  ScopedSpan(const ScopedSpan&) = delete;

 private:
  Spans* spans_;
};

}  // namespace troupe
