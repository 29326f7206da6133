// PackedRows: the token files of instruction, preference, process reward and prompt data, with the
// tokens that training on the rows themselves has.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "engine/data/layouts/encode.h"
#include "launch/run/text_model.h"
#include "launch/tools/preprocess/handlers.h"
#include "launch/tools/preprocess/row_encoder.h"

namespace troupe::launch::tools::preprocess {

class PackedRows final : public RowEncoder {
 public:
  struct Options {
    const Handler* handler = nullptr;
    std::string tokenizer;    ///< folder
    std::string prompt_type;  ///< or a template file; empty: the folder's own template
    std::string map_keys;
    std::vector<std::string> additional_keys;
    std::int64_t sequence_length = 0;  ///< rows of this length and longer are left out; 0: none
    std::string placeholder;           ///< process rewards
    std::vector<std::string> reward_tokens;
  };
  /// Errors of the tokenizer and the template; Errc::usage for options that do not fit the
  /// handler.
  static Result<std::unique_ptr<PackedRows>> create(Options options);

  const std::vector<std::string>& outputs() const override { return outputs_; }
  Result<std::vector<TokenDocument>> encode(const engine::data::Row& row) const override;
  /// Rows that were left out so far: too long, or without a trained token.
  std::int64_t left_out() const { return left_out_; }

 private:
  explicit PackedRows(Options options) : options_(std::move(options)) {}
  Result<> check_options() const;
  Result<> name_outputs();
  Result<std::vector<TokenDocument>> encode_row(const engine::data::Row& row) const;
  Result<std::vector<TokenDocument>> instruction(const engine::data::Sample& sample) const;
  Result<std::vector<TokenDocument>> pair(const engine::data::Sample& sample) const;
  Result<std::vector<TokenDocument>> process_rewards(const engine::data::Sample& sample) const;
  Result<std::vector<TokenDocument>> prompt(const engine::data::Sample& sample,
                                            const engine::data::Row& row) const;

  Options options_;
  ColumnMap map_;
  std::shared_ptr<run::TextModel> model_;
  engine::data::LayoutOptions layout_;
  engine::data::EncodeOptions encode_;
  std::vector<std::string> outputs_;
  mutable std::atomic<std::int64_t> left_out_ = 0;
};

}  // namespace troupe::launch::tools::preprocess
