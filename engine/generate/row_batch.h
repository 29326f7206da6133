// RowBatch: rows of several sequences for one forward pass over a paged cache.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/models/decoder.h"
#include "engine/nn/lora_rows.h"

namespace troupe::engine::generate {

class RowBatch {
 public:
  /// The tokens `first` .. of a sequence, which then has `length` tokens. `adapter`: as in Request.
  void add(std::span<const std::int32_t> tokens, std::int32_t first, std::int32_t length,
           const std::vector<std::int32_t>& pages, const nn::LoraModel* adapter = nullptr);
  std::int32_t rows() const { return static_cast<std::int32_t>(tokens_.size()); }
  /// Hidden states [rows, D]; with pipeline stages on the last one, absent on the others, and
  /// collective over them.
  Tensor forward(models::Decoder& decoder, nn::KvCache& cache, ops::Precision precision,
                 bool packed) const;

 private:
  std::vector<std::int32_t> tokens_;
  ops::Layout layout_{{0}, {}};
  std::vector<std::vector<std::int32_t>> pages_;
  std::vector<std::int32_t> lengths_;
  nn::LoraRows lora_;
};

}  // namespace troupe::engine::generate
