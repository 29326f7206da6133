// The header of a safetensors file (github.com/huggingface/safetensors, README.md "Format"): every
// length, offset and shape is checked before anything of that size is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/checkpoint/stored_type.h"

namespace troupe::engine::checkpoint {

/// One tensor of a file.
struct StoredTensor {
  std::string name;
  StoredType type = StoredType::f32;
  std::vector<std::int64_t> shape;
  std::size_t begin = 0, end = 0;  ///< its bytes, counted from the end of the header

  std::int64_t count() const;  ///< elements; the product was checked when the file was opened
};

/// "[512, 64]"; of a shape with more than eight axes, the first eight.
std::string shape_text(std::span<const std::int64_t> shape);

/// What the header of a file says, checked against the file's size.
struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;                          ///< in the order of their bytes
  std::vector<std::pair<std::string, std::string>> metadata;  ///< `__metadata__`
  std::size_t data_begin = 0;  ///< where the tensors' bytes begin in the file
};

/// Bounds on what a header may ask of us. The format allows 100 MB; a header of a real model is far
/// below 16 MiB.
struct SafetensorsLimits {
  std::size_t header_bytes = 16u << 20;
  std::size_t values = 1u << 20;  ///< members and items in the header's JSON
};

/// Checks the whole of a file's header: length, JSON, known types, no duplicate names, shape
/// products, and offsets that cover the data without hole or overlap. `path` starts every message.
/// Errc::corrupt, Errc::unsupported (beyond the limits, unknown type).
Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> file,
                                                   const std::string& path,
                                                   SafetensorsLimits limits = {});

}  // namespace troupe::engine::checkpoint
