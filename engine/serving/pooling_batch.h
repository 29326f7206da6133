// PoolingBatch: the texts of one pass of a PoolingService.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "engine/models/decoder.h"

namespace troupe::engine::serving {

struct PoolingBatch {
  std::vector<std::int32_t> tokens;   ///< [T] of all texts, end to end
  std::vector<std::int32_t> lengths;  ///< of each text; their sum is T
  std::vector<std::int32_t> rows;     ///< [R] of the T rows whose values are wanted

  /// `every_row`: the values of each token are wanted, instead of the last one's.
  void add(const std::vector<std::int32_t>& text, bool every_row);
};
inline auto fields(PoolingBatch& b) {
  return std::tie(b.tokens, b.lengths, b.rows);
}

/// [R, columns]: the outputs of the score head or, of a model without one, the hidden states after
/// the final norm; on every rank. Collective over the decoder's ranks.
std::vector<float> pooled_values(models::Decoder& decoder, ops::Precision precision,
                                 const PoolingBatch& batch);

}  // namespace troupe::engine::serving
