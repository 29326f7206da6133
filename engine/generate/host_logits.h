// HostLogits: whole rows of logits, for sampling and for the most likely tokens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/generate/generator.h"
#include "engine/models/decoder.h"
#include "engine/ops/visit_rows.h"

namespace troupe::engine::generate {

/// The n largest logits as log-probabilities at temperature 1; ties by id. `lse`: log of the sum
/// of exp(logits).
std::vector<Alternative> top_alternatives(std::span<const float> logits, float lse, int count);

/// 1 for the largest logit; among equals the smaller id comes first.
std::int32_t rank_of(std::span<const float> logits, std::int32_t id);

/// Whole rows of logits [M, V/tp]. Ranks of a tensor-parallel group gather them first, so that
/// every rank samples the same tokens.
class HostLogits {
 public:
  HostLogits(models::Decoder& decoder, const Tensor& logits)
      : device_(decoder.device()), whole_(logits) {
    if (decoder.tp() == nullptr) return;
    whole_ = ops::from_host(device_, {logits.shape()[0], decoder.spec().vocabulary},
                            decoder.head().gather_logits(logits));
  }

  /// Number of rows to compute at a time: 64 MB, but at least one row.
  static std::size_t block_rows(const models::DecoderSpec& spec) {
    return static_cast<std::size_t>(
        std::max<std::int64_t>(1, (std::int64_t{1} << 24) / spec.vocabulary));
  }

  /// [M, V].
  const Tensor& whole() const { return whole_; }
  /// Calls visit(i, row i [V]) for several rows at once. When all are done, rethrows the exception
  /// of the first row that threw.
  template <class Visit>
  void for_each(const Visit& visit) const {
    ops::visit_rows_or_throw(device_, whole_, visit);
  }

 private:
  ops::Device& device_;
  Tensor whole_;
};

}  // namespace troupe::engine::generate
