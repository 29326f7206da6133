// The header of a safetensors file (github.com/huggingface/safetensors, README.md "Format"): every
// length, offset and shape is checked before anything of that size is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/stored_type.h"

namespace troupe::engine::checkpoint {

/// One tensor of a file.
struct StoredTensor {
  std::string name;
  StoredType type = StoredType::f32;
  std::vector<std::int64_t> shape;
  std::size_t begin = 0, end = 0;  ///< offsets of its bytes, from the end of the header

  std::int64_t count() const;  ///< number of elements; cannot overflow
};

/// Number of elements of a shape, times `unit`. Nothing where the product of `unit` and the sizes
/// other than 0 exceeds 63 bits: such a shape is refused in any order of its axes, also with a size
/// of 0 among them.
std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape,
                                          std::int64_t unit = 1);

/// Formats a shape: "[512, 64]"; at most eight axes.
std::string shape_text(std::span<const std::int64_t> shape);

/// Content of a header, validated against the size of the file.
struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;                          ///< in the order of their bytes
  std::vector<std::pair<std::string, std::string>> metadata;  ///< `__metadata__`
  std::size_t data_begin = 0;  ///< offset of the tensors' bytes in the file
};

/// Limits on a header. The format allows 100 MB; headers of real models are far below 16 MiB.
struct SafetensorsLimits {
  std::size_t header_bytes = 16u << 20;
  std::size_t values = 1u << 20;  ///< members and items in the header's JSON
};

/// Parses and validates a header: length, JSON, known types, unique names, shape products, and
/// offsets that cover the data without gap or overlap. `path` starts every message. Errc::corrupt,
/// Errc::unsupported (beyond the limits, unknown type).
Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> file,
                                                   const std::string& path,
                                                   SafetensorsLimits limits = {});

}  // namespace troupe::engine::checkpoint
