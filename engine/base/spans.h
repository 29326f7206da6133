// Spans: the port through which devices, communicators and the phases of a step tell a profiler
// what they do and for how long. Names are literals: they are kept, not copied. Without a profiler
// nothing of this is called.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

enum class SpanKind : std::uint8_t { phase, op, communication };

/// What there is to do, by sizes alone: multiplications and additions of the products, and each
/// operand moved once.
struct Work {
  double flops = 0;
  double bytes = 0;
  bool bf16 = false;  ///< how the products' inputs are rounded
};

struct SpanStart {
  SpanKind kind = SpanKind::phase;
  std::string_view name;
  Work work = {};
  std::string detail =
      {};  ///< an operator's shapes, where they are wanted; what a communication is for
};

/// Of one rank, used by one thread at a time. Spans nest: end() ends the one that began last.
class Spans {
 public:
  virtual ~Spans() = default;
  /// Asked before each span: whether it is to be told. Between outermost spans the answer may
  /// change.
  virtual bool recording() = 0;
  virtual void begin(SpanStart span) = 0;
  virtual void end() noexcept = 0;

  virtual bool wants_shapes() const = 0;
};

/// One span, from construction to destruction. `describe` gives its SpanStart and is called only
/// where it is recorded.
class Spanned {
 public:
  template <class Describe>
  Spanned(Spans* spans, const Describe& describe)
      : spans_(spans != nullptr && spans->recording() ? spans : nullptr) {
    if (spans_) spans_->begin(describe());
  }
  ~Spanned() {
    if (spans_) spans_->end();
  }
  Spanned(const Spanned&) = delete;

 private:
  Spans* spans_;
};

}  // namespace troupe
