// Limits of a running template. The functions on values charge them, so that the cost of an
// operation follows the size of its operands wherever it is called from.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::engine::jinja {

struct RuntimeLimits {
  std::size_t steps = 5'000'000;     ///< statements, expressions and items
  int depth = 1500;                  ///< recursion of evaluation
  std::size_t bytes = 16u << 20;     ///< of one string, and of the output
  std::size_t items = 1u << 20;      ///< of one list
  std::int64_t memory = 64ll << 20;  ///< bytes of all values together
  bool strict = false;               ///< Jinja2's StrictUndefined: an undefined name is an error
};

/// Counts the steps and the memory of the template that this thread renders, from its construction
/// to its destruction; meters nest. Every function throws Failure beyond a limit.
class Meter {
 public:
  explicit Meter(RuntimeLimits limits);
  ~Meter();
  Meter(const Meter&) = delete;

  const RuntimeLimits& limits() const { return limits_; }
  void charge(std::size_t steps);
  void work(std::size_t bytes);
  /// Checks that `bytes` more bytes of values are allowed.
  void require_memory(std::size_t bytes) const;

 private:
  RuntimeLimits limits_;
  std::size_t steps_ = 0, bytes_ = 0;
  std::int64_t live_before_;
  Meter* outer_;
};

// The following functions do nothing on a thread that renders no template.

/// Charges one step for each 64 bytes that are compared, searched, hashed or written.
void work(std::size_t bytes);
/// Checks the limit on the size of one text before it is made.
void require_text(std::size_t bytes);
/// Whether the template that this thread renders has RuntimeLimits::strict.
bool strict_template();

/// Bytes of the values of this thread, while it lives.
class MemoryCount {
 public:
  explicit MemoryCount(std::size_t bytes);
  ~MemoryCount();
  MemoryCount(const MemoryCount&) = delete;

 private:
  std::int64_t bytes_;
};

}  // namespace troupe::engine::jinja
