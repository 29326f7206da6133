#include "engine/nn/embedding.h"

#include <algorithm>

#include "engine/nn/tensor_parallel.h"

namespace troupe::engine::nn {

Tensor Embedding::forward(std::span<const std::int32_t> tokens, const Pass& pass,
                          Saved& saved) const {
  ops::Device& device = pass.device;
  Tensor x =
      device.empty({static_cast<std::int64_t>(tokens.size()), table->value.shape()[1]});  // [T, D]
  std::vector<std::int32_t> room;
  device.gather_rows(table->value, own_rows(*table, tokens, -1, room),
                     x);  // -1: zeros, until the parts are summed
  sum_over(tp, device, x, "embeddings");
  if (multiplier != 1) device.scale(x, multiplier);
  if (positions != nullptr) {
    const auto& places = pass.layout.positions;
    check(places.empty() || *std::ranges::max_element(places) < positions->value.shape()[0],
          "Embedding: a position beyond the table");
    Tensor place = device.empty(x.shape());
    device.gather_rows(positions->value, places, place);
    device.add(x, place, x);
  }
  return norm.forward(x, pass, saved);
}

void Embedding::backward(std::span<const std::int32_t> tokens, const Tensor& dx, const Pass& pass,
                         Saved& saved) const {
  ops::Device& device = pass.device;
  Tensor dsum = norm.backward(dx, pass, saved);  // [T, D]
  if (positions != nullptr && positions->grad)
    device.scatter_add_rows(dsum, pass.layout.positions, positions->grad);
  if (!table->grad) return;
  if (multiplier != 1) {
    Tensor scaled = device.empty(dsum.shape());
    device.copy(dsum, scaled);
    device.scale(scaled, multiplier);
    dsum = scaled;
  }
  table->settle(device);  // a head that shares it may come later
  std::vector<std::int32_t> room;
  device.scatter_add_rows(dsum, own_rows(*table, tokens, -1, room), table->grad);
}

}  // namespace troupe::engine::nn
