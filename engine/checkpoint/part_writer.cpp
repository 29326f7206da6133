#include "engine/checkpoint/part_writer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/text/text.h"
#include "engine/checkpoint/safetensors_layout.h"

namespace troupe::engine::checkpoint {
namespace {

Result<> check_range(const StoredTensor& tensor, std::span<const float> values) {
  constexpr float limit = 65520;  // rounds to 2^16
  if (tensor.type != StoredType::f16) return {};
  const auto large =
      std::ranges::find_if(values, [](float value) { return std::abs(value) >= limit; });
  if (large == values.end()) return {};
  return fail(Errc::usage, cat("tensor ", quote(tensor.name), " has the value ", double{*large},
                               ", which F16 cannot store; use bf16 or f32"));
}

}  // namespace

Result<> PartWriter::write(const StoredTensor& place, const models::StoredTensor& layout,
                           const BlockOf& block_of) {
  place_ = &place;
  layout_ = &layout;
  std::int64_t at = 0;
  for (const models::Rows& rows : layout.rows) {
    const auto block = block_of(rows.parameter);
    for (std::int64_t i = 0; block && i < rows.count; ++i)
      RETURN_IF_ERROR(add_row(*block, rows.row(i), at + i));
    at += rows.count;
  }
  return flush();
}

Result<> PartWriter::add_row(const OwnBlock& block, std::int64_t row, std::int64_t stored_row) {
  if (row < block.written_rows.begin || row >= block.written_rows.end) return {};
  // Of column 0, in the part of this rank.
  const std::int64_t start = (row - block.rows.begin) * block.columns.size() - block.columns.begin;
  const std::int64_t begin = start + block.written_columns.begin,
                     end = start + block.written_columns.end;
  auto stretch = std::ranges::partition_point(
      block.stretches, [&](const OwnBlock::Stretch& each) { return each.end <= begin; });
  for (; stretch != block.stretches.end() && stretch->begin < end; ++stretch) {
    const std::int64_t last = std::min(end, stretch->end);
    for (std::int64_t from = std::max(begin, stretch->begin); from < last;) {
      const std::int64_t to = std::min(last, from + buffer_values);
      RETURN_IF_ERROR(add(stored_row, from - start,
                          stretch->values.flat(from - stretch->begin, to - stretch->begin)));
      from = to;
    }
  }
  return {};
}

Result<> PartWriter::add(std::int64_t row, std::int64_t column, const Tensor& values) {
  const std::int64_t width = values.count();
  const bool fits = row == tile_.row + tile_.rows && column == tile_.column &&
                    width == tile_.width && (tile_.rows + 1) * width <= buffer_values;
  if (!fits) {
    RETURN_IF_ERROR(flush());
    tile_ = {row, 0, column, width};
  }
  const auto from = static_cast<std::size_t>(tile_.rows++ * width);
  if (values_.empty()) values_.resize(static_cast<std::size_t>(buffer_values));
  device_.download(values, std::span(values_).subspan(from, static_cast<std::size_t>(width)));
  return {};
}

Result<> PartWriter::flush() {
  const Tile tile = std::exchange(tile_, {});
  const auto count = static_cast<std::size_t>(tile.rows * tile.width);
  RETURN_IF_ERROR(check_range(*place_, std::span(values_).first(count)));
  return layout_->transposed ? write_transposed(tile) : write_rows(tile);
}

// In the file a row of the tile is a column.
Result<> PartWriter::write_transposed(const Tile& tile) {
  const std::int64_t stored_columns = layout_->row_count();
  std::vector<float> run(static_cast<std::size_t>(tile.rows));
  for (std::int64_t c = 0; c < tile.width; ++c) {
    for (std::size_t r = 0; r < run.size(); ++r)
      run[r] = values_[r * static_cast<std::size_t>(tile.width) + static_cast<std::size_t>(c)];
    RETURN_IF_ERROR(write_run((tile.column + c) * stored_columns + tile.row, run));
  }
  return {};
}

Result<> PartWriter::write_rows(const Tile& tile) {
  const std::int64_t columns = layout_->columns;
  const bool whole = tile.width == columns;
  const std::int64_t runs = whole ? std::min<std::int64_t>(tile.rows, 1) : tile.rows,
                     length = whole ? tile.rows * columns : tile.width;
  for (std::int64_t i = 0; i < runs; ++i)
    RETURN_IF_ERROR(write_run((tile.row + i) * columns + tile.column,
                              std::span(values_).subspan(static_cast<std::size_t>(i * length),
                                                         static_cast<std::size_t>(length))));
  return {};
}

Result<> PartWriter::write_run(std::int64_t at, std::span<const float> values) {
  const auto bytes = stored_bytes(place_->type, values, halves_);
  const std::uint64_t element = bits_of(place_->type) / 8;
  written_ += std::ssize(bytes);
  return file_.write_at(data_begin_ + place_->begin + static_cast<std::uint64_t>(at) * element,
                        bytes);
}

}  // namespace troupe::engine::checkpoint
