// PartWriter: writes the values of tensors that one rank has to their places in a file, which other
// ranks may be writing as well, with a buffer of bounded size.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/output_file.h"
#include "engine/checkpoint/safetensors_header.h"
#include "engine/models/storage.h"
#include "engine/ops/device.h"
#include "engine/parallel/shard.h"

namespace troupe::engine::checkpoint {

/// The block of a parameter that this rank writes.
struct OwnBlock {
  /// Values [begin, end) of the rank's part of the parameter, flattened.
  struct Stretch {
    std::int64_t begin, end;
    Tensor values;
  };
  /// Of the whole parameter, a vector being one column: the rank's part is
  /// [rows.size(), columns.size()].
  parallel::Range rows, columns;
  parallel::Range written_rows, written_columns;  ///< within these
  std::vector<Stretch> stretches;                 ///< ascending; other values are not here
};

class PartWriter {
 public:
  /// The largest number of values in the buffer, 1 MiB of them.
  static constexpr std::int64_t buffer_values = std::int64_t{1} << 18;
  using BlockOf = std::function<std::optional<OwnBlock>(const std::string& parameter)>;

  /// The tensors' bytes begin at `data_begin` of `file`. The arguments outlive this.
  PartWriter(OutputFile& file, ops::Device& device, std::uint64_t data_begin)
      : file_(file), device_(device), data_begin_(data_begin) {}

  /// Writes the values of a tensor of this layout that `block_of` finds here. Errc::io; usage for a
  /// value that F16 would turn into infinity.
  Result<> write(const StoredTensor& place, const models::StoredTensor& layout,
                 const BlockOf& block_of);
  /// Bytes written so far.
  std::int64_t written() const { return written_; }

 private:
  /// Values of consecutive rows of the stored tensor (columns, where it is transposed).
  struct Tile {
    std::int64_t row = 0, rows = 0, column = 0, width = 0;
  };
  Result<> add_row(const OwnBlock& block, std::int64_t row, std::int64_t stored_row);
  Result<> add(std::int64_t row, std::int64_t column, const Tensor& values);
  Result<> flush();
  Result<> write_transposed(const Tile& tile);
  Result<> write_rows(const Tile& tile);
  /// Consecutive elements of the stored tensor, from `at` on.
  Result<> write_run(std::int64_t at, std::span<const float> values);

  OutputFile& file_;
  ops::Device& device_;
  std::uint64_t data_begin_;
  std::int64_t written_ = 0;
  const StoredTensor* place_ = nullptr;           ///< of the present tensor
  const models::StoredTensor* layout_ = nullptr;  ///< of the present tensor
  Tile tile_;
  std::vector<float> values_;  ///< of the tile
  std::vector<std::uint16_t> halves_;
};

}  // namespace troupe::engine::checkpoint
