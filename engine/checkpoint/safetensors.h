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

#include "engine/base/error.h"
#include "engine/base/file.h"
#include "engine/checkpoint/safetensors_header.h"
#include "engine/parallel/shard.h"

namespace troupe::engine::checkpoint {

/// Floats of a tensor, or of the rows or columns of it that a shard names: where they lie was
/// checked, and so was their type. It ends with its file.
class StoredFloats {
 public:
  std::int64_t count() const { return rows_ * length_; }
  /// Those from `begin` on, flattened, converted as SafetensorsFile::read_f32 says; from any number
  /// of threads at once.
  void read(std::int64_t begin, std::span<float> into) const;

 private:
  friend class SafetensorsFile;
  StoredType type_ = StoredType::f32;
  std::span<const std::byte> bytes_;  ///< of the whole tensor
  // As rows of `width_` elements, of which columns [first_, first_ + length_) are wanted from each
  // of `rows_`: rows lie end to end.
  std::int64_t rows_ = 0, width_ = 0, first_ = 0, length_ = 0;
};

/// An open file: a read-only map. A file that another process cuts short while it is mapped ends
/// this process (SIGBUS); checkpoints are never changed in place by troupe.
class SafetensorsFile {
 public:
  /// Errc::not_found, io, corrupt, unsupported.
  static Result<SafetensorsFile> open(const std::string& path, SafetensorsLimits limits = {});

  const std::string& path() const { return path_; }
  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
  const std::vector<std::pair<std::string, std::string>>& metadata() const {
    return header_.metadata;
  }
  /// nullptr when there is none of that name.
  const StoredTensor* find(std::string_view name) const;
  /// The value of a metadata key, or nullptr.
  const std::string* metadata(std::string_view key) const;

  /// The bytes of a tensor of this file, little-endian, row-major.
  std::span<const std::byte> bytes(const StoredTensor& tensor) const;

  // The values of a tensor, converted: exactly where the target holds them, rounded to nearest
  // otherwise (F64 to float). `into` must have the tensor's count. Errc::not_found, bad_input
  // (another count), unsupported (a type that is not a number of the wanted kind, or an integer
  // that does not fit).
  Result<> read_f32(std::string_view name,
                    std::span<float> into) const;  ///< from F32, BF16, F16, F64
  Result<> read_f64(std::string_view name,
                    std::span<double> into) const;  ///< from F32, BF16, F16, F64
  Result<> read_i64(std::string_view name,
                    std::span<std::int64_t> into) const;  ///< from I64, I32, I16, I8, U8, BOOL
  Result<> read_i32(std::string_view name, std::span<std::int32_t> into) const;  ///< from the same
  /// The rows or columns that `part` names, which must have `count` elements; nothing else of the
  /// tensor is touched. Errors of read_f32; Errc::bad_input, too, when the tensor has no such part.
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
  std::unordered_map<std::string_view, std::size_t>
      index_;  // keys view the names inside header_.tensors, whose storage never moves
};

/// Errc::corrupt, naming file, tensor, element and value, when one of `values` is NaN or infinite.
Result<> check_finite(std::span<const float> values, const std::string& path,
                      std::string_view tensor);

}  // namespace troupe::engine::checkpoint
