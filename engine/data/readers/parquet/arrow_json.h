// Cells of Arrow arrays as JSON values, exactly.
#pragma once

#include <arrow/api.h>
#include <arrow/memory_pool.h>

#include "engine/data/readers/row_reader.h"

namespace troupe::engine::data {

/// Errc::unsupported (names the column) when the schema has a type that rows cannot hold, nests too
/// deep, or repeats a name.
Result<> check_schema(const arrow::Schema& schema, const std::string& where);

/// Cell `i` of `array`. `budget` bytes are left for the row, and less after. Strings and lists
/// become themselves, structs objects, maps objects (string keys) or lists of pairs; dates, times,
/// decimals and unsigned integers beyond 63 bits their text, bytes that are not UTF-8 their
/// hexadecimal digits. Errc::bad_input: text that is not UTF-8, a row beyond its budget.
Result<Json> cell_json(const arrow::Array& array, std::int64_t i, std::size_t& budget);

/// Row `index` of the file `path` as an object; `batch` holds the rows from `first`.
/// Errc::bad_input, naming row and column.
Result<std::optional<Row>> read_row(const arrow::RecordBatch& batch, std::int64_t first,
                                    const std::string& path, std::int64_t index);

/// Arrow's memory, but no more than a file of so many bytes can ask for in earnest: what it says of
/// its own sizes is not to be trusted.
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
