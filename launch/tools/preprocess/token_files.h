// TokenFiles: the datasets PREFIX_NAME_document that a command writes, and its progress file, from
// which a killed command continues.
#pragma once

#include <string>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/data/loader/example_reader.h"
#include "engine/data/megatron/indexed_dataset_writer.h"
#include "launch/tools/preprocess/row_encoder.h"

namespace troupe::launch::tools::preprocess {

class TokenFiles {
 public:
  struct Options {
    std::string prefix;
    std::vector<std::string> outputs;
    engine::data::megatron::TokenType type = engine::data::megatron::TokenType::i32;
    std::string progress_file;
    Json settings;  ///< an object with everything that determines the bytes
  };
  /// Opens the files for the rows behind position(), which is that of the progress file if there is
  /// one. Errc::usage if other settings wrote it, with the first difference; errors of
  /// IndexedDatasetWriter::open.
  static Result<TokenFiles> open(Options options);

  /// The first row that is not in the files.
  engine::data::RowPosition position() const { return position_; }
  /// Appends the documents of one row, one for each output. Errors of
  /// IndexedDatasetWriter::add_sequence.
  Result<> add(const std::vector<TokenDocument>& documents);
  std::int64_t tokens() const;
  std::int64_t documents() const;
  /// Makes everything so far durable; all rows before `next` are in the files.
  Result<> save(engine::data::RowPosition next);
  /// Writes the indices and removes the progress file.
  Result<> finish(engine::data::RowPosition end);

 private:
  explicit TokenFiles(Options options) : options_(std::move(options)) {}
  Result<Json> read_progress() const;

  Options options_;
  engine::data::RowPosition position_;
  std::vector<engine::data::megatron::IndexedDatasetWriter> writers_;
};

/// PREFIX_NAME_document
std::string dataset_prefix(const std::string& prefix, const std::string& output);

}  // namespace troupe::launch::tools::preprocess
