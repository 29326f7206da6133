// Post-processors of tokenizer.json add tokens around an encoded text (Hugging Face tokenizers,
// processors/).
#pragma once

#include <vector>

#include "engine/tokenizer/base/vocabulary.h"

namespace troupe::engine::tokenizer {

class PostProcessor {
 public:
  PostProcessor() = default;
  /// `before` and `after` around every text.
  PostProcessor(std::vector<TokenId> before, std::vector<TokenId> after);
  /// null, ByteLevel (offsets only), TemplateProcessing, BertProcessing, RobertaProcessing,
  /// Sequence. Errc::unsupported, by name, for others.
  static Result<PostProcessor> from_json(const Json* processor, std::string_view where);

  void apply(std::vector<TokenId>& ids) const;
  /// The largest id that it adds; -1 if none.
  TokenId largest() const;

 private:
  /// The output for a single text: ids, with -1 in place of the text.
  using Template = std::vector<TokenId>;
  Result<> add(const Json& processor, std::string_view where, int depth);
  Result<> add_template(const Json& processor, std::string_view where);
  std::vector<Template> templates_;
};

}  // namespace troupe::engine::tokenizer
