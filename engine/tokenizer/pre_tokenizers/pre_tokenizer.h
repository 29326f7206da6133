// Pre-tokenizers of tokenizer.json split text into words for the model (Hugging Face tokenizers,
// pre_tokenizers/).
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/tokenizer/base/growth.h"
#include "engine/tokenizer/base/regex.h"

namespace troupe {
class Json;
}

namespace troupe::engine::tokenizer {

/// A segment of text and the words into which it is split so far (ranges of `text`, in order, none
/// empty).
struct Pieces {
  std::string text;
  std::vector<Range> words;
  /// Bytes at the beginning of `text` that stem from the first character of the user's text, with
  /// what a normalizer inserted before it; 0 where the segment begins elsewhere. Words that begin
  /// among them begin at the start of the user's text.
  std::size_t leading = 0;
  std::size_t limit = growth_limit(0);  ///< of its bytes
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Pieces& pieces) const = 0;
};

/// Treatment of the matches of a pattern: separate words, removed, joined to the previous or next
/// word, or joined in runs.
enum class Behavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };

/// Splits `word` at `matches` (inside it, in order) according to `behavior`. With `invert` the text
/// between matches counts as the match.
void split_at(Range word, const std::vector<Range>& matches, Behavior behavior, bool invert,
              std::vector<Range>& out);

/// nullptr for null. With `raw_bytes`, a ByteLevel that comes last leaves bytes as they are.
/// Errc::unsupported, by name, for other types.
Result<std::unique_ptr<PreTokenizer>> make_pre_tokenizer(const Json* pre_tokenizer, bool raw_bytes,
                                                         std::string_view where);

/// True if the last pre-tokenizer is ByteLevel.
bool ends_with_byte_level(const Json* pre_tokenizer);

/// The "behavior" member, `otherwise` when absent.
Result<Behavior> read_behavior(const Json& options, Behavior otherwise, std::string_view where);

/// Appends each word again through `write(out, word, leads)` and replaces the text by the result;
/// `leads`: the word begins at the start of the user's text.
template <class Write>
void rewrite_words(Pieces& pieces, Write write) {
  std::string text, first;
  text.reserve(pieces.text.size() + pieces.words.size());
  std::size_t leading = 0;
  for (Range& word : pieces.words) {
    const std::size_t begin = text.size();
    const auto old = std::string_view(pieces.text).substr(word.begin, word.end - word.begin);
    const bool leads = word.begin < pieces.leading;
    write(text, old, leads);
    check_growth(text.size(), pieces.limit, "pre-tokenizer");
    if (leads) {
      first.clear();
      write(first, old.substr(0, pieces.leading - word.begin), leads);
      leading = begin + std::min(first.size(), text.size() - begin);
    }
    word = {begin, text.size()};
  }
  pieces.text = std::move(text);
  pieces.leading = leading;
}

/// The boolean member `key`, `otherwise` when absent.
bool read_flag(const Json& options, std::string_view key, bool otherwise);

}  // namespace troupe::engine::tokenizer
