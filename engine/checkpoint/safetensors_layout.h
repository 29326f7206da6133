// The layout of a safetensors file, with the bytes of the Rust library (safetensors/src/tensor.rs,
// `prepare`): wider types first, then by name; header padded with spaces to eight bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/safetensors_header.h"

namespace troupe::engine::checkpoint {

/// A tensor of a file that will be written.
struct TensorPlan {
  std::string name;
  StoredType type = StoredType::f32;
  std::vector<std::int64_t> shape;
};

using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

struct SafetensorsLayout {
  std::vector<StoredTensor> tensors;  ///< in the order of their bytes
  std::string header;                 ///< with its length; the tensors' bytes follow
};

/// Equal plans give equal bytes. Names must differ (a Bug otherwise).
SafetensorsLayout lay_out(const std::vector<TensorPlan>& plans,
                          const SafetensorsMetadata& metadata = {{"format", "pt"}});

/// The bytes of values in a file: of F32 the values themselves, of BF16 and F16 `halves`, to which
/// they are rounded to nearest even. Another type is a Bug.
std::span<const std::byte> stored_bytes(StoredType type, std::span<const float> values,
                                        std::vector<std::uint16_t>& halves);

}  // namespace troupe::engine::checkpoint
