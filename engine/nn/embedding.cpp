#include "engine/nn/embedding.h"

#include <algorithm>

#include "engine/nn/context_part.h"
#include "engine/nn/hidden_dropout.h"
#include "engine/nn/sequence_parallel.h"
#include "engine/nn/tensor_parallel.h"

namespace troupe::engine::nn {
namespace {

const ops::Indices& positions_of(const ForwardContext& pass) {
  return pass.context != nullptr ? pass.context->positions : pass.layout.row_positions;
}

}  // namespace

Tensor Embedding::forward(std::span<const std::int32_t> tokens, const ForwardContext& pass,
                          Saved& saved) const {
  ops::Device& device = pass.device;
  Tensor x =
      device.empty({static_cast<std::int64_t>(tokens.size()), table->value.shape()[1]});  // [T, D]
  std::vector<std::int32_t> storage;
  // -1 gives zeros, until the parts are summed.
  device.gather_rows(table->value, device.indices(local_rows(*table, tokens, -1, storage)), x);
  x = sum_rows(pass, tp, x, "embeddings");
  if (multiplier != 1) device.scale(x, multiplier);
  if (positions != nullptr) {
    const auto& ids = positions_of(pass);
    check(ids.host.empty() || *std::ranges::max_element(ids.host) < positions->value.shape()[0],
          "Embedding: position beyond the table");
    Tensor learned = device.empty({std::ssize(ids.host), x.shape()[1]});
    device.gather_rows(positions->value, ids, learned);
    device.add(x, own_rows(pass, learned), x);
  }
  x = norm.forward(x, pass, saved);
  if (!drops_hidden(pass)) return x;
  Tensor y = pass.device.empty(x.shape());
  drop_hidden(pass, embedding_stream, x, y);
  return y;
}

void Embedding::backward(std::span<const std::int32_t> tokens, const Tensor& dy,
                         const ForwardContext& pass, Saved& saved) const {
  ops::Device& device = pass.device;
  Tensor dx = dy;
  if (drops_hidden(pass)) {
    dx = device.empty(dy.shape());
    drop_hidden(pass, embedding_stream, dy, dx);
  }
  Tensor dsum = gather_rows(pass, norm.backward(dx, pass, saved), "embeddings");  // [T, D]
  const auto add_rows = [&](const Tensor& from, const ops::Indices& rows, const Tensor& grad) {
    GradientSum sum(device, grad);
    device.scatter_add_rows(from, rows, sum.f32());
    sum.finish();
  };
  if (positions != nullptr && positions->grad) add_rows(dsum, positions_of(pass), positions->grad);
  if (!table->grad) return;
  if (multiplier != 1) {
    Tensor scaled = device.empty(dsum.shape());
    device.copy(dsum, scaled);
    device.scale(scaled, multiplier);
    dsum = scaled;
  }
  std::vector<std::int32_t> storage;
  const auto rows = local_rows(*table, tokens, -1, storage);
  if (table->state && table->state->lookup) return table->state->lookup->add(dsum, rows);
  table->zero_if_unset(device);
  add_rows(dsum, device.indices(rows), table->grad);
}

}  // namespace troupe::engine::nn
