// Added tokens: texts that are always tokens, matched before normalization or pre-tokenization
// (Hugging Face tokenizers, added_vocabulary.rs).
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/base/byte_trie.h"
#include "engine/tokenizer/base/vocabulary.h"

namespace troupe::engine::tokenizer {

struct AddedToken {
  TokenId id = -1;
  std::string content;
  bool single_word = false;  ///< not inside a word
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< and after it
  bool normalized = true;    ///< matched in normalized text, not in the original text
  bool special = false;
};

/// Reads single_word, lstrip, rstrip, normalized and special of an object; an absent `normalized`
/// is the opposite of `special`. id and content stay unset.
AddedToken read_token_flags(const Json& object);

/// Reads the "added_tokens" array. Errc::bad_input for ids that are negative, too large, given
/// twice, or contradict `vocabulary`.
Result<std::vector<AddedToken>> read_added_tokens(const Json* list, const Vocabulary& vocabulary,
                                                  std::string_view where);

/// Matches a set of texts: leftmost, then longest.
class TokenMatcher {
 public:
  struct Entry {
    std::string text;  ///< the text to match
    AddedToken token;
  };
  /// A token, or the text between tokens (id < 0).
  struct Segment {
    TokenId id;
    std::size_t begin, end;
  };

  explicit TokenMatcher(std::vector<Entry> entries = {});
  /// The segments of `text` in order, none empty. With `keep_special_text` special tokens are not
  /// matched.
  void split(std::string_view text, bool keep_special_text, std::vector<Segment>& out) const;

 private:
  std::int32_t longest_match_at(std::string_view text, std::size_t at) const;
  bool accept(const AddedToken& token, std::string_view text, std::size_t begin,
              std::size_t end) const;

  std::vector<Entry> entries_;
  ByteTrie trie_;
  std::array<bool, 256> starts_{};
};

}  // namespace troupe::engine::tokenizer
