// The simplest model: a word is a token, or it is the unknown token.
#pragma once

#include "engine/tokenizer/models/model.h"

namespace troupe::engine::tokenizer {

class WordLevel : public Model {
 public:
  /// "unk_token" may be absent from the vocabulary; then encode throws Failure (Errc::bad_input)
  /// for unknown words.
  static Result<std::unique_ptr<Model>> from_json(const Json& model, std::string_view where);
  void encode(std::string_view word, Workspace& workspace,
              std::vector<TokenId>& out) const override;

 private:
  TokenId unknown_ = -1;
};

}  // namespace troupe::engine::tokenizer
