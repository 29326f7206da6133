#include "engine/tokenizer/pre_tokenizers/class_splitters.h"

#include "engine/base/character_classes.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/base/utf8.h"

namespace troupe::engine::tokenizer {
namespace {

/// Each character for which `is_match` is true is a separate match.
template <class IsMatch>
class CharacterSplit : public PreTokenizer {
 public:
  CharacterSplit(IsMatch is_match, Behavior behavior) : is_match_(is_match), behavior_(behavior) {}
  void apply(Pieces& pieces) const override {
    std::vector<Range> words, matches;
    for (const Range& word : pieces.words) {
      matches.clear();
      for (std::size_t at = word.begin; at < word.end;) {
        const CodePoint point = code_point_at(pieces.text, at);
        if (is_match_(point.value)) matches.push_back({at, at + point.size});
        at += point.size;
      }
      split_at(word, matches, behavior_, false, words);
    }
    pieces.words = std::move(words);
  }

 private:
  IsMatch is_match_;
  Behavior behavior_;
};

template <class IsMatch>
std::unique_ptr<PreTokenizer> split_characters(IsMatch is_match, Behavior behavior) {
  return std::make_unique<CharacterSplit<IsMatch>>(is_match, behavior);
}

/// Runs of word characters and runs of others; spaces are dropped.
class Whitespace : public PreTokenizer {
 public:
  void apply(Pieces& pieces) const override {
    std::vector<Range> words;
    for (const Range& word : pieces.words) {
      int previous = 0;
      for (std::size_t at = word.begin; at < word.end;) {
        const CodePoint point = code_point_at(pieces.text, at);
        const int kind = is_word(point.value) ? 1 : is_whitespace(point.value) ? 0 : 2;
        if (kind != 0 && kind == previous) words.back().end = at + point.size;
        if (kind != 0 && kind != previous) words.push_back({at, at + point.size});
        previous = kind;
        at += point.size;
      }
    }
    pieces.words = std::move(words);
  }
};

/// BERT's: spaces dropped, punctuation alone.
class BertPreTokenizer : public PreTokenizer {
 public:
  void apply(Pieces& pieces) const override {
    split_characters(is_whitespace, Behavior::removed)->apply(pieces);
    split_characters(is_punctuation, Behavior::isolated)->apply(pieces);
  }
};

}  // namespace

Result<std::unique_ptr<PreTokenizer>> make_class_splitter(const std::string& type,
                                                          const Json& options,
                                                          std::string_view where) {
  if (type == "Whitespace") return std::make_unique<Whitespace>();
  if (type == "WhitespaceSplit") return split_characters(is_whitespace, Behavior::removed);
  if (type == "BertPreTokenizer") return std::make_unique<BertPreTokenizer>();
  if (type == "Digits") {
    const Json* individual = options.find("individual_digits");
    const bool each = individual && individual->is_bool() && individual->boolean();
    return split_characters(is_numeric, each ? Behavior::isolated : Behavior::contiguous);
  }
  if (type == "Punctuation") {
    auto behavior = read_behavior(options, Behavior::isolated, where);
    RETURN_IF_ERROR(behavior);
    return split_characters(is_punctuation, *behavior);
  }
  if (type == "CharDelimiterSplit") {
    auto delimiter = get_string(options, "delimiter", where);
    RETURN_IF_ERROR(delimiter);
    if (count_code_points(*delimiter) != 1)
      return fail(Errc::bad_input,
                  cat(where, ": \"delimiter\" must be one character, found ", quote(*delimiter)));
    const char32_t wanted = code_point_at(*delimiter, 0).value;
    return split_characters([wanted](char32_t c) { return c == wanted; }, Behavior::removed);
  }
  return nullptr;
}

}  // namespace troupe::engine::tokenizer
