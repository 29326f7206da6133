#include "engine/tokenizer/pre_tokenizers/metaspace.h"

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/base/utf8.h"

namespace troupe::engine::tokenizer {
namespace {

enum class PrependScheme { always, first, never };

class Metaspace : public PreTokenizer {
 public:
  Metaspace(std::string replacement, PrependScheme scheme, bool split)
      : replacement_(std::move(replacement)), scheme_(scheme), split_(split) {}

  void apply(Pieces& pieces) const override {
    rewrite_words(pieces, [&](std::string& out, std::string_view word, std::size_t index) {
      const bool wanted = scheme_ == PrependScheme::always ||
                          (scheme_ == PrependScheme::first && pieces.at_start && index == 0);
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
