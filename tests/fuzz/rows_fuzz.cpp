// Any text as a data file: JSON lines or a list of rows, of any layout, for any purpose. Every row is used, counted or the reason to stop;
// a reader that is sent to a row answers that row. Input: a byte for the format, a byte for the purpose, then the file.
#include <cstdint>
#include <cstdlib>

#include "engine/data/dataset.h"
#include "engine/data/steps.h"
#include "tests/engine/data/byte_encoder.h"
#include "tests/fuzz/scratch_file.h"

namespace {

using namespace troupe;        // NOLINT: a program of one page
using namespace engine::data;  // NOLINT

template <class T>
void check_account(const Result<Dataset<T>>& loaded) {
  if (!loaded) return;
  const DataReport& report = loaded->report;
  if (report.rows != static_cast<std::int64_t>(loaded->examples.size()) + report.bad + report.untrainable) std::abort();
}

void check_seek(const std::string& path) {
  const auto reader = open_rows(path);
  if (!reader) return;
  std::vector<Row> rows;
  for (int tries = 0; tries < 200; ++tries) {
    auto row = (*reader)->next();
    if (!row && row.error().code != Errc::bad_input) return;
    if (row && !*row) break;
    if (row) rows.push_back(std::move(**row));
  }
  for (const Row& row : rows) {
    if (!(*reader)->seek(row.index)) std::abort();
    const auto again = (*reader)->next();
    if (!again || !*again || (*again)->line != row.line) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::ScratchFolder folder;
  if (size < 2) return 0;
  DataOptions options;
  options.paths = {folder.write(data[0] % 2 == 0 ? "rows.jsonl" : "rows.json", fuzz::text_of(data + 2, size - 2))};
  options.bad_row_limit = 100;
  options.encode.max_length = 64;
  const ByteEncoder encoder(static_cast<ByteEncoder::Template>(data[1] / 3 % 5));
  if (data[1] % 3 == 0) check_account(load_sft(options, encoder));
  if (data[1] % 3 == 1) check_account(load_pairs(options, encoder));
  if (data[1] % 3 == 2) check_account(load_prompts(options, encoder));
  // Process rewards and the pairs of reward models, by bits of the byte that the others leave free.
  if (data[0] / 2 % 2 == 1) check_account(load_steps(options, encoder));
  options.encode.steps.tokens = value_or_throw(find_step_tokens("k", {"+", "-"}, encoder));
  if (data[0] / 4 % 2 == 1) check_account(load_steps(options, encoder));
  options.encode.leave_out_longer = true;
  if (data[0] / 8 % 2 == 1) check_account(load_pairs(options, encoder));
  check_seek(options.paths.front());
  return 0;
}
