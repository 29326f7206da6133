// Safetensors files (github.com/huggingface/safetensors, README.md "Format"): an 8-byte
// little-endian header length, a JSON header, then the tensors' bytes end to end. Every length,
// offset and shape of a file is checked before anything of that size is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/files/file.h"
#include "engine/checkpoint/safetensors_header.h"
#include "engine/parallel/shard.h"

namespace troupe::engine::checkpoint {

/// Floats of a tensor, or of the rows or columns of a shard; location and type are validated. Valid
/// while its SafetensorsFile exists.
class StoredFloats {
 public:
  /// Columns [first, first + length) of each of `rows` consecutive rows of `width` elements.
  struct Region {
    std::int64_t rows = 0, width = 0, first = 0, length = 0;
  };
  /// `bytes`: those of the whole tensor, which has a floating-point type.
  StoredFloats(StoredType type, std::span<const std::byte> bytes, const Region& region)
      : type_(type), bytes_(bytes), region_(region) {}

  std::int64_t count() const { return region_.rows * region_.length; }
  /// Reads the elements from `begin` on, flattened, converted as in SafetensorsFile::read_f32.
  /// Thread-safe.
  void read(std::int64_t begin, std::span<float> into) const;

 private:
  StoredType type_;
  std::span<const std::byte> bytes_;
  Region region_;
};

/// An open file, mapped read-only. Truncating a mapped file terminates this process (SIGBUS);
/// troupe never changes checkpoints in place.
class SafetensorsFile {
 public:
  /// Errc::not_found, io, corrupt, unsupported.
  static Result<SafetensorsFile> open(const std::string& path, SafetensorsLimits limits = {});

  const std::string& path() const { return path_; }
  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
  const std::vector<std::pair<std::string, std::string>>& metadata() const {
    return header_.metadata;
  }
  /// The tensor of that name, or nullptr.
  const StoredTensor* find(std::string_view name) const;
  /// The value of a metadata key, or nullptr.
  const std::string* metadata(std::string_view key) const;

  /// The bytes of a tensor of this file, little-endian, row-major.
  std::span<const std::byte> bytes(const StoredTensor& tensor) const;

  // Read the values of a tensor, converted: exactly where the target can represent them, rounded to
  // nearest otherwise (F64 to float). `into` must have the tensor's count. Errc::not_found,
  // bad_input (another count), unsupported (another kind of type, or an integer that does not fit).
  Result<> read_f32(std::string_view name,
                    std::span<float> into) const;  ///< from F32, BF16, F16, F64
  Result<> read_f64(std::string_view name,
                    std::span<double> into) const;  ///< from F32, BF16, F16, F64
  Result<> read_i64(std::string_view name,
                    std::span<std::int64_t> into) const;  ///< from I64, I32, I16, I8, U8, BOOL
  Result<> read_i32(std::string_view name, std::span<std::int32_t> into) const;  ///< from the same
  /// The rows or columns of `part`, which must have `count` elements; reads nothing else. Errors of
  /// read_f32; Errc::bad_input also when the tensor has no such part.
  Result<StoredFloats> floats(std::string_view name, const parallel::Shard& part,
                              std::int64_t count) const;
  Result<> read_part(std::string_view name, const parallel::Shard& part,
                     std::span<float> into) const;

 private:
  SafetensorsFile(std::string path, MappedFile file, SafetensorsHeader header);
  template <class T>
  Result<> read(std::string_view name, std::span<T> into) const;

  std::string path_;
  MappedFile file_;
  SafetensorsHeader header_;
  // Keys view the names inside header_.tensors, whose storage never moves.
  std::unordered_map<std::string_view, std::size_t> index_;
};

/// Errc::corrupt, naming file, tensor, element and value, when one of `values` is NaN or infinite.
Result<> check_finite(std::span<const float> values, const std::string& path,
                      std::string_view tensor);

}  // namespace troupe::engine::checkpoint
