#include "engine/data/readers/packed_reader.h"

#include <algorithm>
#include <filesystem>

#include "engine/base/text/text.h"

namespace troupe::engine::data {
namespace {

using megatron::IndexedDataset;

constexpr std::string_view packed_mark = "_packed_", packed_end = "_document";
/// The keys that rows are read from; the first of each list must exist.
constexpr std::string_view row_keys[] = {"input_ids", "labels"};
constexpr std::string_view pair_keys[] = {"chosen_input_ids", "chosen_labels", "rejected_input_ids",
                                          "rejected_labels"};

std::string key_prefix(const std::string& prefix, std::string_view key) {
  return cat(prefix, packed_mark, key, packed_end);
}

// PREFIX of PREFIX_packed_KEY_document.bin.
std::optional<std::string> prefix_of(const std::string& path, std::string_view key) {
  const std::string end = key_prefix("", key) + ".bin";
  if (!path.ends_with(end) || path.size() == end.size()) return std::nullopt;
  return path.substr(0, path.size() - end.size());
}

Result<> check_mask(const IndexedDataset& mask, std::int64_t row) {
  const auto values = mask.sequence(row);
  RETURN_IF_ERROR(values);
  if (std::ranges::all_of(*values, [](std::int32_t value) { return value == 1; })) return {};
  return fail(Errc::unsupported,
              cat(mask.prefix(), ".bin: row ", row + 1, ": expected an attention mask of 1, found ",
                  "other values: neat-packed files are not supported; preprocess the rows without ",
                  "--neat-pack, or use them directly"));
}

}  // namespace

std::optional<std::string> find_packed_files(const std::string& prefix) {
  for (const auto key : {row_keys[0], pair_keys[0]}) {
    std::string path = key_prefix(prefix, key) + ".bin";
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return std::nullopt;
}

bool is_packed_file(const std::string& path) {
  return prefix_of(path, row_keys[0]).has_value() || prefix_of(path, pair_keys[0]).has_value();
}

Result<std::unique_ptr<RowReader>> PackedReader::open(const std::string& path) {
  std::unique_ptr<PackedReader> out(new PackedReader(path));
  const auto pairs = prefix_of(path, pair_keys[0]);
  const std::string prefix = pairs ? *pairs : prefix_of(path, row_keys[0]).value_or(path);
  const auto names = pairs ? std::span<const std::string_view>(pair_keys)
                           : std::span<const std::string_view>(row_keys);
  const auto is_there = [&](std::string_view key) {
    std::error_code ignored;
    return std::filesystem::exists(key_prefix(prefix, key) + ".idx", ignored);
  };
  for (const auto key : names) {
    // Prompts have no labels.
    if (key == row_keys[1] && !is_there(key)) continue;
    auto set = IndexedDataset::open(key_prefix(prefix, key));
    RETURN_IF_ERROR(set);
    if (!out->keys_.empty() && set->sequences() != out->keys_[0].second.sequences())
      return fail(Errc::corrupt, cat(set->prefix(), ".idx: has ", set->sequences(), " rows, but ",
                                     out->keys_[0].second.prefix(), ".idx has ",
                                     out->keys_[0].second.sequences()));
    out->keys_.emplace_back(key, std::move(*set));
  }
  if (!pairs && is_there("attention_mask")) {
    auto mask = IndexedDataset::open(key_prefix(prefix, "attention_mask"));
    RETURN_IF_ERROR(mask);
    if (mask->sequences() != out->keys_[0].second.sequences())
      return fail(Errc::corrupt, cat(mask->prefix(), ".idx: has ", mask->sequences(), " rows, but ",
                                     out->keys_[0].second.prefix(), ".idx has ",
                                     out->keys_[0].second.sequences()));
    out->mask_ = std::move(*mask);
  }
  return out;
}

Result<std::optional<Row>> PackedReader::next() {
  if (index_ >= keys_[0].second.sequences()) return std::nullopt;
  Row row{.value = Json::Object{},
          .file = path_,
          .line = index_ + 1,
          .index = index_,
          .numbered = true};
  ++index_;
  if (mask_) RETURN_IF_ERROR(check_mask(*mask_, row.index));
  for (const auto& [key, set] : keys_) {
    const auto tokens = set.sequence(row.index);
    RETURN_IF_ERROR(tokens);
    Json::Array list;
    list.reserve(tokens->size());
    for (const std::int32_t token : *tokens) list.emplace_back(std::int64_t{token});
    row.value.set(key, std::move(list));
  }
  return row;
}

Result<> PackedReader::seek(std::int64_t index) {
  index_ = index;
  return {};
}

}  // namespace troupe::engine::data
