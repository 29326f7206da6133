#include "engine/tokenizer/pre_tokenizers/byte_level.h"

#include <optional>

#include "engine/base/json.h"
#include "engine/tokenizer/byte_alphabet.h"

namespace troupe::engine::tokenizer {
namespace {

constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(std::optional<Regex> regex, bool add_prefix_space, bool raw_bytes)
      : regex_(std::move(regex)), add_prefix_space_(add_prefix_space), raw_bytes_(raw_bytes) {}

  void apply(Pieces& pieces) const override {
    if (add_prefix_space_) {
      rewrite_words(pieces, [](std::string& out, std::string_view word, std::size_t) {
        out.append(word.starts_with(' ') ? "" : " ").append(word);
      });
    }
    if (regex_) split(pieces);
    if (!raw_bytes_)
      rewrite_words(pieces, [](std::string& out, std::string_view word, std::size_t) {
        append_byte_characters(out, word);
      });
  }

 private:
  void split(Pieces& pieces) const {
    std::vector<Range> words, matches;
    for (const Range& word : pieces.words) {
      matches.clear();
      regex_->find_all(std::string_view(pieces.text).substr(word.begin, word.end - word.begin),
                       matches);
      for (Range& match : matches) {
        match.begin += word.begin;
        match.end += word.begin;
      }
      split_at(word, matches, Behavior::isolated, false, words);
    }
    pieces.words = std::move(words);
  }

  std::optional<Regex> regex_;
  bool add_prefix_space_, raw_bytes_;
};

}  // namespace

Result<std::unique_ptr<PreTokenizer>> make_byte_level(const Json& options, bool raw_bytes,
                                                      std::string_view where) {
  std::optional<Regex> regex;
  if (read_flag(options, "use_regex", true)) {
    auto compiled = Regex::compile(gpt2_pattern, where);
    RETURN_IF_ERROR(compiled);
    regex = std::move(*compiled);
  }
  return std::make_unique<ByteLevel>(std::move(regex), read_flag(options, "add_prefix_space", true),
                                     raw_bytes);
}

}  // namespace troupe::engine::tokenizer
