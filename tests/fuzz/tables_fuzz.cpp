// Any bytes as a parquet or Arrow file: refused or read, and a reader that is sent to a row answers
// that row. Input: the file.
#include <cstdint>
#include <cstdlib>

#include "engine/data/readers/row_reader.h"
#include "tests/fuzz/scratch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::engine::data;  // NOLINT: a program of one page
  static const troupe::fuzz::ScratchFolder folder;
  const auto text = troupe::fuzz::text_of(data, size);
  const bool parquet = text.starts_with("PAR1");
  const auto reader = open_rows(folder.write(parquet ? "rows.parquet" : "rows.arrow", text));
  if (!reader) return 0;
  std::int64_t rows = 0;
  for (; rows < 200; ++rows) {
    const auto row = (*reader)->next();
    if (!row && row.error().code != troupe::Errc::bad_input) return 0;
    if (row && !*row) break;
    if (row && (*row)->index != rows) std::abort();
  }
  if (rows == 0) return 0;
  if (!(*reader)->seek(rows / 2)) return 0;
  const auto again = (*reader)->next();
  if (again && (!*again || (*again)->index != rows / 2)) std::abort();
  return 0;
}
