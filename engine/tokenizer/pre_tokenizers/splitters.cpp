#include "engine/tokenizer/pre_tokenizers/splitters.h"

#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include "engine/base/json/json.h"
#include "engine/base/text/character_classes.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"

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

namespace {

constexpr int any_script = -1;

// SentencePiece's rules: kana count as Han, a space belongs to any script. The library's table is
// that of Unicode 9: later characters belong to any script as well.
int script_of(char32_t c) {
  if (c == ' ') return any_script;
  if (c == 0x30FC) return USCRIPT_HAN;
  if (c == 0x589 || c == 0x61C) return USCRIPT_COMMON;      // are of one script since
  if (c == 0x953 || c == 0x954) return USCRIPT_DEVANAGARI;  // are of any script since
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  if (age[0] == 0 || age[0] > 9) return any_script;
  UErrorCode status = U_ZERO_ERROR;
  const int script = uscript_getScript(static_cast<UChar32>(c), &status);
  if (script == USCRIPT_UNKNOWN) return any_script;
  return script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA ? USCRIPT_HAN : script;
}

/// Splits where the script changes. Text before the first character with a script of its own is
/// dropped, as in the library.
class UnicodeScripts : public PreTokenizer {
 public:
  void apply(Pieces& pieces) const override {
    std::vector<Range> words;
    for (const Range& word : pieces.words) {
      int last = any_script;
      for (std::size_t at = word.begin; at < word.end;) {
        const CodePoint point = code_point_at(pieces.text, at);
        const int script = script_of(point.value);
        if (script != any_script && script != last) {
          if (last != any_script) words.back().end = at;
          words.push_back({at, word.end});
          last = script;
        }
        at += point.size;
      }
    }
    pieces.words = std::move(words);
  }
};

class FixedLength : public PreTokenizer {
 public:
  explicit FixedLength(std::size_t length) : length_(length) {}
  void apply(Pieces& pieces) const override {
    std::vector<Range> words;
    for (const Range& word : pieces.words) {
      std::size_t left = 0;
      for (std::size_t at = word.begin; at < word.end; --left) {
        if (left == 0) {
          words.push_back({at, at});
          left = length_;
        }
        words.back().end = at += utf8_length(pieces.text[at]);
      }
    }
    pieces.words = std::move(words);
  }

 private:
  std::size_t length_;
};

}  // namespace

Result<std::unique_ptr<PreTokenizer>> make_script_splitter(const std::string& type,
                                                           const Json& options,
                                                           std::string_view where) {
  if (type == "UnicodeScripts") return std::make_unique<UnicodeScripts>();
  if (type != "FixedLength") return nullptr;
  std::int64_t length = 5;
  if (options.find("length")) {
    auto given = get_integer(options, "length", where);
    RETURN_IF_ERROR(given);
    length = *given;
  }
  if (length < 1)
    return fail(Errc::bad_input, cat(where, ": \"length\" must be at least 1, found ", length));
  return std::make_unique<FixedLength>(static_cast<std::size_t>(length));
}

}  // namespace troupe::engine::tokenizer
