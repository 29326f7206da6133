#include "engine/generate/row_batch.h"

#include "engine/generate/forward_pass.h"

namespace troupe::engine::generate {

void RowBatch::add(std::span<const std::int32_t> tokens, std::int32_t first, std::int32_t length,
                   const std::vector<std::int32_t>& pages, const nn::LoraModel* adapter) {
  lora_.add(rows(), std::ssize(tokens), adapter);
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  for (std::size_t i = 0; i < tokens.size(); ++i)
    layout_.positions.push_back(first + static_cast<std::int32_t>(i));
  layout_.offsets.push_back(rows());
  pages_.push_back(pages);
  lengths_.push_back(length);
}

Tensor RowBatch::forward(models::Decoder& decoder, nn::KvCache& cache, ops::Precision precision,
                         bool packed) const {
  const ops::PreparedLayout layout = decoder.device().prepare(layout_, {cache.page_size, pages_});
  nn::ForwardContext pass{.device = decoder.device(),
                          .layout = layout,
                          .precision = precision,
                          .cache = &cache,
                          .lengths = lengths_,
                          .packed = packed};
  if (!lora_.runs.empty()) pass.lora_rows = &lora_;
  return forward_pass(decoder, tokens_, pass);
}

}  // namespace troupe::engine::generate
