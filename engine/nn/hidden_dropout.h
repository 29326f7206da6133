// Dropout of hidden states: of the embeddings, and of what attention and MLP add to them (Vaswani
// et al. 2017, section 5.4).
#pragma once

#include <cstdint>

#include "engine/nn/forward_context.h"

namespace troupe::engine::nn {

/// Random streams of the embeddings and of the residual connections of a layer of the whole model.
constexpr std::uint32_t embedding_stream = 0;
constexpr std::uint32_t residual_stream(std::int64_t layer, int connection) {
  return static_cast<std::uint32_t>(1 + 2 * layer + connection);
}

inline bool drops_hidden(const ForwardContext& pass) {
  return pass.dropout != nullptr && pass.dropout->hidden > 0;
}

/// y = x with dropout where the pass drops hidden states; y may be x. x, y [rows of residual
/// connections, D].
inline void drop_hidden(const ForwardContext& pass, std::uint32_t stream, const Tensor& x,
                        Tensor& y) {
  const Dropout& how = *pass.dropout;
  pass.device.dropout(x, {how.hidden, how.hidden_key, stream, how.hidden_rows}, y);
}

}  // namespace troupe::engine::nn
