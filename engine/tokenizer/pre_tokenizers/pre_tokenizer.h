// Pre-tokenizers of tokenizer.json: they cut text into the words that a model sees (Hugging Face
// tokenizers, pre_tokenizers/).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/tokenizer/regex.h"

namespace troupe {
class Json;
}

namespace troupe::engine::tokenizer {

/// One stretch of text on its way to the model, and the words that it is cut into so far (ranges of
/// `text`, in order, none empty).
struct Pieces {
  std::string text;
  std::vector<Range> words;
  bool at_start = true;  ///< the stretch begins where the user's text begins
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Pieces& pieces) const = 0;
};

/// What becomes of the matches of a pattern: a word of their own, dropped, joined to the word
/// before or after, or joined in runs.
enum class Behavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };

/// Cuts `word` at `matches` (inside it, in order): the words of `behavior`. With `invert` what lies
/// between is the match.
void split_at(Range word, const std::vector<Range>& matches, Behavior behavior, bool invert,
              std::vector<Range>& out);

/// nullptr for null. With `raw_bytes`, a ByteLevel that comes last leaves bytes as they are.
/// Errc::unsupported, by name, for other types.
Result<std::unique_ptr<PreTokenizer>> make_pre_tokenizer(const Json* pre_tokenizer, bool raw_bytes,
                                                         std::string_view where);

/// True when the last thing that happens is ByteLevel.
bool ends_with_byte_level(const Json* pre_tokenizer);

/// Digits, Punctuation, Whitespace, WhitespaceSplit, BertPreTokenizer, CharDelimiterSplit: words by
/// character class. nullptr for other types.
Result<std::unique_ptr<PreTokenizer>> make_class_splitter(const std::string& type,
                                                          const Json& options,
                                                          std::string_view where);

/// UnicodeScripts and FixedLength. nullptr for other types.
Result<std::unique_ptr<PreTokenizer>> make_script_splitter(const std::string& type,
                                                           const Json& options,
                                                           std::string_view where);

/// ByteLevel and Metaspace, which also change the text.
Result<std::unique_ptr<PreTokenizer>> make_byte_level(const Json& options, bool raw_bytes,
                                                      std::string_view where);
Result<std::unique_ptr<PreTokenizer>> make_metaspace(const Json& options, std::string_view where);

/// The "behavior" member, `otherwise` when absent.
Result<Behavior> read_behavior(const Json& options, Behavior otherwise, std::string_view where);

}  // namespace troupe::engine::tokenizer
