// Any text as a config.json: refused with a reason, or its files hold every row of every parameter
// once, and its numbers are numbers. Input: the file.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>

#include "engine/models/storage.h"
#include "tests/fuzz/scratch_file.h"

namespace {

using namespace troupe;          // NOLINT: a program of one page
using namespace engine::models;  // NOLINT

constexpr std::int64_t max_rows = 1 << 16;

void check_rotary(const DecoderSpec& spec) {
  for (const auto& table : spec.rotary) {
    if (static_cast<int>(table.inverse_frequencies.size()) != spec.head_size / 2) std::abort();
    for (const double frequency : table.inverse_frequencies)
      if (!std::isfinite(frequency)) std::abort();
  }
}

// Each row of each parameter stands in one place of one tensor.
void check_storage(const DecoderSpec& spec) {
  std::map<std::string, std::vector<bool>> seen;
  for (const auto& wanted : parameter_list(spec))
    seen[wanted.name].resize(static_cast<std::size_t>(wanted.shape[0]));
  for (const StoredTensor& tensor : stored_tensors(spec))
    for (const Rows& block : tensor.rows) {
      auto& rows = seen.at(block.parameter);
      for (std::int64_t i = 0; i < block.count; ++i) {
        const auto row = static_cast<std::size_t>(block.row(i));
        if (row >= rows.size() || rows[row]) std::abort();
        rows[row] = true;
      }
    }
  for (const auto& [name, rows] : seen)
    for (const bool there : rows)
      if (!there) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto json = parse_json(fuzz::text_of(data, size), "fuzz", {.bytes = std::size_t{1} << 20});
  if (!json) return 0;
  const auto spec = read_spec(*json, "fuzz");
  if (!spec) {
    if (spec.error().code != Errc::bad_input && spec.error().code != Errc::unsupported)
      std::abort();
    return 0;
  }
  if (spec->parameter_count() <= 0 || spec->heads % spec->kv_heads != 0) std::abort();
  check_rotary(*spec);
  const std::int64_t latent = spec->latent ? spec->latent->query_rank + spec->latent->key_rank : 0;
  const std::int64_t rows =
      spec->vocabulary +
      spec->layers *
          (spec->inner + 2 * std::int64_t{spec->heads} * spec->head_size + spec->width + latent);
  if (rows < max_rows && spec->max_positions < max_rows) check_storage(*spec);
  return 0;
}
