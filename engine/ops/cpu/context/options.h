// Options of the CPU device, and the bounds of what its operations hold at a time.
#pragma once

#include <cstdint>

namespace troupe::engine::ops {

struct CpuOptions {
  int threads = 0;  ///< 0: as many as the process may use
  /// Pins each thread to a processor of its own. Requires as many threads as processors that the
  /// process may use; otherwise a warning says why threads are not pinned.
  bool pin_threads = false;
  /// Highest instruction set to use: "baseline", "avx2", "avx512", "avx512_bf16", or "" for the
  /// best one that the processor has.
  const char* isa = "";
  /// Logits that lm_head_forward_backward() holds at a time (see lm_head_rows()).
  std::int64_t max_logits = 24'000'000;
  /// Logits that lm_head() keeps for the backward pass, at most: 320 MB, which is a micro-batch of
  /// 2500 tokens with a vocabulary of 32000. Those of the first rows are kept.
  std::int64_t max_kept_logits = 80'000'000;
};

/// Rows whose logits lm_head_forward_backward() holds at a time. A vocabulary above 70000 has as
/// many rows as one of 70000: with fewer rows the gradient of the weight would be read and written
/// too often.
constexpr std::int64_t lm_head_rows(std::int64_t vocabulary, std::int64_t max_logits) {
  return max_logits / (vocabulary < 70'000 ? vocabulary : 70'000);
}

/// Columns of the vocabulary whose gradients the backward pass of the LM head holds packed at a
/// time.
inline constexpr std::int64_t lm_head_columns = 896;
/// Elements of the LM head's weight that are packed at a time for the gradients of hidden states:
/// 128 MiB.
inline constexpr std::int64_t lm_head_weight_elements = std::int64_t{32} << 20;
/// Elements of an operand, or of the operands of a group of products, that are packed at a time:
/// 128 MiB.
inline constexpr std::int64_t max_packed_elements = std::int64_t{32} << 20;

}  // namespace troupe::engine::ops
