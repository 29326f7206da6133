#include "engine/tokenizer/models/word_level.h"

#include "engine/base/json.h"
#include "engine/base/text.h"

namespace troupe::engine::tokenizer {

Result<std::unique_ptr<Model>> WordLevel::from_json(const Json& model, std::string_view where) {
  const Json* vocab = model.find("vocab");
  auto vocabulary = Vocabulary::from_json(vocab ? *vocab : Json(), where);
  RETURN_IF_ERROR(vocabulary);
  auto unknown = get_string(model, "unk_token", where);
  RETURN_IF_ERROR(unknown);
  auto out = std::make_unique<WordLevel>();
  out->vocabulary_ = std::move(*vocabulary);
  out->unknown_ = out->vocabulary_.find(*unknown);
  return std::unique_ptr<Model>(std::move(out));
}

void WordLevel::encode(std::string_view word, Workspace&, std::vector<TokenId>& out) const {
  const TokenId id = vocabulary_.find(word);
  if (id < 0 && unknown_ < 0)
    throw Failure({Errc::bad_input, cat("the tokenizer has no token for ", quote(word, 60),
                                        ", and its unknown token is no token either")});
  out.push_back(id >= 0 ? id : unknown_);
}

}  // namespace troupe::engine::tokenizer
