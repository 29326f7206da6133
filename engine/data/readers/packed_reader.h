// Packed token files of MindSpeed and `troupe preprocess`: PREFIX_packed_KEY_document.bin and .idx
// for each key. Row i has the tokens of sequence i under each key: {"input_ids": [...], "labels":
// [...]}, or chosen_input_ids, chosen_labels, rejected_input_ids and rejected_labels.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/megatron/indexed_dataset.h"
#include "engine/data/readers/row_reader.h"

namespace troupe::engine::data {

/// The .bin file that stands for the packed files of a prefix, that of the (chosen) input_ids;
/// nullopt: there are none.
std::optional<std::string> find_packed_files(const std::string& prefix);
/// Whether `path` is such a file.
bool is_packed_file(const std::string& path);

class PackedReader : public RowReader {
 public:
  /// Opens the files of all keys beside `path`. Errors of IndexedDataset::open; Errc::corrupt if
  /// they differ in their number of sequences.
  static Result<std::unique_ptr<RowReader>> open(const std::string& path);
  /// Errc::unsupported for an attention mask with values other than 1 (neat-packed files).
  Result<std::optional<Row>> next() override;
  Result<> seek(std::int64_t index) override;

 private:
  explicit PackedReader(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::vector<std::pair<std::string, megatron::IndexedDataset>> keys_;
  std::optional<megatron::IndexedDataset> mask_;
  std::int64_t index_ = 0;
};

}  // namespace troupe::engine::data
