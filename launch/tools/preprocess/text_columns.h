// TextColumns: pretraining documents from columns of text, as tools/preprocess_data.py of
// Megatron-LM and the GeneralPretrainHandler of MindSpeed-LLM encode them.
#pragma once

#include <optional>

#include "engine/tokenizer/tokenizer.h"
#include "launch/tools/preprocess/row_encoder.h"

namespace troupe::launch::tools::preprocess {

class TextColumns final : public RowEncoder {
 public:
  struct Options {
    std::vector<std::string> columns;
    bool special_tokens = true;  ///< those of the post-processor, such as BOS
    bool append_eod = false;     ///< the tokenizer's end token behind each document
  };
  /// Errc::usage if an end token is wanted and the tokenizer has none.
  static Result<TextColumns> create(engine::tokenizer::Tokenizer tokenizer, Options options);

  const std::vector<std::string>& outputs() const override { return options_.columns; }
  /// A document of one sequence for each column; of an empty text, a document without sequences.
  Result<std::vector<TokenDocument>> encode(const engine::data::Row& row) const override;

 private:
  TextColumns(engine::tokenizer::Tokenizer tokenizer, Options options)
      : tokenizer_(std::move(tokenizer)), options_(std::move(options)) {}

  engine::tokenizer::Tokenizer tokenizer_;
  Options options_;
};

}  // namespace troupe::launch::tools::preprocess
