// Added tokens: texts that are tokens wherever they stand, found before anything else happens
// (Hugging Face tokenizers, added_vocabulary.rs).
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/byte_trie.h"
#include "engine/tokenizer/vocabulary.h"

namespace troupe::engine::tokenizer {

struct AddedToken {
  TokenId id = -1;
  std::string content;
  bool single_word = false;  ///< not inside a word
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< and after it
  bool normalized = true;    ///< looked for in normalized text, not in the text as it came
  bool special = false;
};

/// From the "added_tokens" array. Errc::bad_input for ids that are negative, too large, given
/// twice, or contradict `vocabulary`.
Result<std::vector<AddedToken>> read_added_tokens(const Json* list, const Vocabulary& vocabulary,
                                                  std::string_view where);

/// Finds a set of texts: the leftmost, and there the longest.
class TokenMatcher {
 public:
  struct Entry {
    std::string text;  ///< as it is looked for
    AddedToken token;
  };
  /// A token, or a stretch between tokens (id < 0).
  struct Segment {
    TokenId id;
    std::size_t begin, end;
  };

  explicit TokenMatcher(std::vector<Entry> entries = {});
  /// The segments of `text` in order, none empty. With `keep_special_text` special tokens are not
  /// looked for.
  void split(std::string_view text, bool keep_special_text, std::vector<Segment>& out) const;

 private:
  std::int32_t longest_at(std::string_view text, std::size_t at) const;
  bool accept(const AddedToken& token, std::string_view text, std::size_t begin,
              std::size_t end) const;

  std::vector<Entry> entries_;
  ByteTrie trie_;
  std::array<bool, 256> starts_{};
};

}  // namespace troupe::engine::tokenizer
