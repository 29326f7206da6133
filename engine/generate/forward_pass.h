// forward_pass(): hidden states without a backward pass, through the pipeline stages of a decoder.
#pragma once

#include <cstdint>
#include <span>

#include "engine/models/decoder.h"

namespace troupe::engine::generate {

/// Hidden states [T, D] of `tokens` [T] after the final norm; with pipeline stages on the last one,
/// absent on the others. Collective over the decoder's ranks. Stages change no bit.
Tensor forward_pass(models::Decoder& decoder, std::span<const std::int32_t> tokens,
                    const nn::ForwardContext& pass);

}  // namespace troupe::engine::generate
