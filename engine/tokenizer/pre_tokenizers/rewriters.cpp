#include "engine/tokenizer/pre_tokenizers/rewriters.h"

#include <optional>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/tokenizer/base/byte_alphabet.h"

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
      rewrite_words(pieces, [](std::string& out, std::string_view word, bool) {
        out.append(word.starts_with(' ') ? "" : " ").append(word);
      });
    }
    if (regex_) split(pieces);
    if (!raw_bytes_)
      rewrite_words(pieces, [](std::string& out, std::string_view word, bool) {
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

namespace {

enum class PrependScheme { always, first, never };

class Metaspace : public PreTokenizer {
 public:
  Metaspace(std::string replacement, PrependScheme scheme, bool split)
      : replacement_(std::move(replacement)), scheme_(scheme), split_(split) {}

  void apply(Pieces& pieces) const override {
    rewrite_words(pieces, [&](std::string& out, std::string_view word, bool leads) {
      const bool wanted =
          scheme_ == PrependScheme::always || (scheme_ == PrependScheme::first && leads);
      if (wanted && !word.starts_with(replacement_) && !word.starts_with(' '))
        out.append(replacement_);
      for (const char c : word) {
        if (c == ' ')
          out.append(replacement_);
        else
          out.push_back(c);
      }
    });
    if (split_) split(pieces);
  }

 private:
  void split(Pieces& pieces) const {
    std::vector<Range> words, matches;
    for (const Range& word : pieces.words) {
      matches.clear();
      for (std::size_t at = pieces.text.find(replacement_, word.begin); at < word.end;
           at = pieces.text.find(replacement_, at + replacement_.size()))
        matches.push_back({at, at + replacement_.size()});
      split_at(word, matches, Behavior::merged_with_next, false, words);
    }
    pieces.words = std::move(words);
  }

  std::string replacement_;
  PrependScheme scheme_;
  bool split_;
};

}  // namespace

Result<std::unique_ptr<PreTokenizer>> make_metaspace(const Json& options, std::string_view where) {
  auto replacement = get_string(options, "replacement", where);
  RETURN_IF_ERROR(replacement);
  if (count_code_points(*replacement) != 1)
    return fail(Errc::bad_input,
                cat(where, ": \"replacement\" must be one character, found ", quote(*replacement)));
  PrependScheme scheme =
      read_flag(options, "add_prefix_space", true) ? PrependScheme::always : PrependScheme::never;
  if (const Json* name = options.find("prepend_scheme"); name && !name->is_null()) {
    const std::string text = name->is_string() ? name->string() : name->dump();
    if (text != "always" && text != "first" && text != "never")
      return fail(
          Errc::bad_input,
          cat(where, ": \"prepend_scheme\" must be always, first or never, found ", quote(text)));
    scheme = text == "always"  ? PrependScheme::always
             : text == "first" ? PrependScheme::first
                               : PrependScheme::never;
  }
  return std::make_unique<Metaspace>(std::move(*replacement), scheme,
                                     read_flag(options, "split", true));
}

}  // namespace troupe::engine::tokenizer
