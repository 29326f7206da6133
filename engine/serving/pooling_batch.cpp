#include "engine/serving/pooling_batch.h"

#include "engine/generate/forward_pass.h"
#include "engine/generate/last_stage.h"

namespace troupe::engine::serving {

void PoolingBatch::add(const std::vector<std::int32_t>& text, bool every_row) {
  const auto first = static_cast<std::int32_t>(tokens.size());
  const auto length = static_cast<std::int32_t>(text.size());
  tokens.insert(tokens.end(), text.begin(), text.end());
  lengths.push_back(length);
  for (std::int32_t t = every_row ? 0 : length - 1; t < length; ++t) rows.push_back(first + t);
}

std::vector<float> pooled_values(models::Decoder& decoder, ops::Precision precision,
                                 const PoolingBatch& batch) {
  ops::Layout layout{{0}, {}};
  for (const std::int32_t length : batch.lengths) {
    for (std::int32_t t = 0; t < length; ++t) layout.positions.push_back(t);
    layout.offsets.push_back(layout.offsets.back() + length);
  }
  ops::Device& device = decoder.device();
  const ops::PreparedLayout prepared = device.prepare(std::move(layout));
  const nn::ForwardContext pass{.device = device, .layout = prepared, .precision = precision};
  const Tensor hidden = generate::forward_pass(decoder, batch.tokens, pass);
  return generate::LastStage(decoder, "pooled values").values<float>([&] {
    Tensor chosen = device.empty({std::ssize(batch.rows), decoder.spec().width});
    device.gather_rows(hidden, device.indices(batch.rows), chosen);
    if (decoder.spec().labels == 0) return ops::to_host(device, chosen);
    return ops::to_host(device, decoder.score().forward(chosen));
  });
}

}  // namespace troupe::engine::serving
