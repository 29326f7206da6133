// Any text as a data file: JSON lines, a list of rows, a table, plain text, each also inside gzip,
// of any layout, for any purpose. Every row is used, counted or the reason to stop; a reader that
// is sent to a row answers that row. Input: a byte for the format, a byte for the purpose, a byte
// for the options of plain text and tables, then the file.
#include <cstdint>
#include <cstdlib>

#include "engine/data/layouts/steps.h"
#include "engine/data/loader/dataset.h"
#include "tests/engine/data/byte_encoder.h"
#include "tests/fuzz/scratch_file.h"

namespace {

using namespace troupe;        // NOLINT: a program of one page
using namespace engine::data;  // NOLINT

template <class T>
void check_account(const Result<Dataset<T>>& loaded) {
  if (!loaded) return;
  const DataReport& report = loaded->report;
  if (report.rows !=
      static_cast<std::int64_t>(loaded->examples.size()) + report.bad + report.untrainable)
    std::abort();
}

// Rows that are pairs give two examples.
void check_unpaired(const Result<Dataset<UnpairedExample>>& loaded) {
  if (!loaded) return;
  const auto used = loaded->report.rows - loaded->report.bad - loaded->report.untrainable;
  const auto examples = static_cast<std::int64_t>(loaded->examples.size());
  if (examples < used || examples > 2 * used) std::abort();
}

void check_seek(const std::string& path, const ReadOptions& options) {
  const auto reader = open_rows(path, options);
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
  if (size < 3) return 0;
  constexpr const char* names[] = {"rows.jsonl", "rows.json",     "rows.csv",     "rows.tsv",
                                   "rows.txt",   "rows.jsonl.gz", "rows.json.gz", "rows.csv.gz"};
  DataOptions options;
  options.paths = {folder.write(names[data[0] / 16 % 8], fuzz::text_of(data + 3, size - 3))};
  options.reading.sample_by = static_cast<SampleBy>(data[2] % 5);
  if (data[2] / 4 % 2 == 1) options.reading.column_names = {"prompt", "completion", "label"};
  if (data[2] / 8 % 2 == 1)
    options.tags = {
        {"role_tag", "a"}, {"content_tag", "b"}, {"user_tag", "c"}, {"function_tag", "d"}};
  options.bad_row_limit = 100;
  options.encode.max_length = 64;
  const ByteEncoder encoder(static_cast<ByteEncoder::Template>(data[1] / 3 % 5));
  if (data[1] % 3 == 0) check_account(load<SftExample>(options, encoder));
  if (data[1] % 3 == 1) check_account(load<PairExample>(options, encoder));
  if (data[1] % 3 == 2) check_account(load<PromptRow>(options, encoder));
  if (data[0] % 2 == 1) check_unpaired(load<UnpairedExample>(options, encoder));
  // Process rewards and the pairs of reward models, by bits of the byte that the others leave free.
  if (data[0] / 2 % 2 == 1) check_account(load<StepExample>(options, encoder));
  options.encode.steps.tokens = value_or_throw(find_step_tokens("k", {"+", "-"}, encoder));
  if (data[0] / 4 % 2 == 1) check_account(load<StepExample>(options, encoder));
  options.encode.skip_longer = true;
  if (data[0] / 8 % 2 == 1) check_account(load<PairExample>(options, encoder));
  check_seek(options.paths.front(), options.reading);
  return 0;
}
