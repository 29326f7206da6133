// The forms in which values of weights are sent. All are lossless: decode(encode(x)) has the bits
// of x.
//   f32    4 bytes per value.
//   bf16   blocks of 512 values: 2 bytes per value where all of a block are bf16 numbers, else 4. A
//          bit per block comes first.
//   delta  the bits of each value XOR those of the receiver's, as 4 planes of bytes. Groups of 4096
//          values; per plane a mask of its 64 blocks of 64 bytes that are not all zero, then per
//          such block a mask of its bytes that are not zero, and these bytes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "actors/protocol/weight_transfer.h"
#include "engine/base/errors/error.h"

namespace troupe::actors::roles {

using protocol::WeightCoding;

/// `base`: the receiver's values (delta only), as many as `values`.
std::vector<std::byte> encode_values(WeightCoding coding, std::span<const float> values,
                                     std::span<const float> base);

/// Reads values.size() values. Errc::bad_input if `bytes` are not exactly their encoding's length.
/// No memory is allocated.
Result<> decode_values(WeightCoding coding, std::span<const std::byte> bytes,
                       std::span<const float> base, std::span<float> values);

}  // namespace troupe::actors::roles
