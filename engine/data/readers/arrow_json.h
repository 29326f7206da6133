// Cells of Arrow arrays as JSON values, exactly.
#pragma once

#include <arrow/api.h>
#include <arrow/memory_pool.h>

#include "engine/data/readers/row_reader.h"

namespace troupe::engine::data {

/// Errc::unsupported, naming the column, if the schema has a type that rows cannot represent, nests
/// too deeply, or repeats a name.
Result<> check_schema(const arrow::Schema& schema, const std::string& where);

/// Converts cell `i` of `array`, whose type is `field`'s; its size is subtracted from `budget`, the
/// bytes left for the row. Strings, lists and structs become strings, lists and objects; maps
/// become objects (string keys) or lists of pairs; dates, times, decimals and unsigned integers
/// beyond 63 bits become text; bytes that are not UTF-8 become hexadecimal digits; text of the
/// extension type arrow.json becomes the value that it spells. Errc::bad_input for text that is not
/// UTF-8 or should be JSON and is not, and a row beyond its budget.
Result<Json> cell_json(const arrow::Array& array, const arrow::Field& field, std::int64_t i,
                       std::size_t& budget);

/// Row `index` of the file `path` as an object; `batch` holds the rows from `first`.
/// Errc::bad_input, naming row and column.
Result<std::optional<Row>> read_row(const arrow::RecordBatch& batch, std::int64_t first,
                                    const std::string& path, std::int64_t index);

/// Arrow's memory pool with a limit in proportion to the size of the file, because sizes recorded
/// in a file are untrusted.
class BoundedPool : public arrow::MemoryPool {
 public:
  explicit BoundedPool(std::uint64_t file_bytes);
  using arrow::MemoryPool::Allocate;
  using arrow::MemoryPool::Free;
  using arrow::MemoryPool::Reallocate;
  arrow::Status Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) override;
  arrow::Status Reallocate(std::int64_t old_size, std::int64_t new_size, std::int64_t alignment,
                           std::uint8_t** at) override;
  void Free(std::uint8_t* buffer, std::int64_t size, std::int64_t alignment) override;
  std::int64_t bytes_allocated() const override { return used_; }
  std::int64_t total_bytes_allocated() const override {
    return arrow::default_memory_pool()->total_bytes_allocated();
  }
  std::int64_t num_allocations() const override {
    return arrow::default_memory_pool()->num_allocations();
  }
  std::string backend_name() const override { return arrow::default_memory_pool()->backend_name(); }

 private:
  arrow::Status check(std::int64_t more) const;
  std::int64_t limit_, used_ = 0;
};

}  // namespace troupe::engine::data
