#include "engine/tokenizer/models/model.h"

#include <string>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/tokenizer/base/byte_trie.h"
#include "engine/tokenizer/models/bpe.h"
#include "engine/tokenizer/models/unigram.h"

namespace troupe::engine::tokenizer {
namespace {

/// A word is a token, or it is the unknown token.
class WordLevel : public Model {
 public:
  /// "unk_token" may be absent from the vocabulary; then encode throws Failure (Errc::bad_input)
  /// for unknown words.
  static Result<std::unique_ptr<Model>> from_json(const Json& model, std::string_view where);
  void encode(std::string_view word, Workspace& workspace,
              std::vector<TokenId>& out) const override;

 private:
  TokenId unknown_ = -1;
};

/// Greedy longest match; a word that cannot be split this way is the unknown token.
class WordPiece : public Model {
 public:
  /// Errc::bad_input when the unknown token is not in the vocabulary.
  static Result<std::unique_ptr<Model>> from_json(const Json& model, std::string_view where);
  void encode(std::string_view word, Workspace& workspace,
              std::vector<TokenId>& out) const override;

 private:
  ByteTrie trie_;
  ByteTrie::Node continued_ =
      ByteTrie::root;  // where pieces that do not begin a word are looked for; none: there are none
  std::size_t max_word_characters_ = 100;  // in characters
  TokenId unknown_ = -1;
};

Result<std::unique_ptr<Model>> WordLevel::from_json(const Json& model, std::string_view where) {
  const Json* vocab = model.find("vocab");
  auto vocabulary = Vocabulary::from_json(vocab ? *vocab : Json(), where);
  RETURN_IF_ERROR(vocabulary);
  auto unknown = get_string(model, "unk_token", where);
  RETURN_IF_ERROR(unknown);
  auto out = std::make_unique<WordLevel>();
  out->vocabulary_ = std::move(*vocabulary);
  out->unknown_ = out->vocabulary_.find(*unknown);
  return std::unique_ptr<Model>(std::move(out));
}

void WordLevel::encode(std::string_view word, Workspace&, std::vector<TokenId>& out) const {
  const TokenId id = vocabulary_.find(word);
  if (id < 0 && unknown_ < 0)
    throw Failure({Errc::bad_input, cat("the tokenizer has no token for ", quote(word, 60),
                                        ", and its unknown token is no token either")});
  out.push_back(id >= 0 ? id : unknown_);
}

Result<std::unique_ptr<Model>> WordPiece::from_json(const Json& model, std::string_view where) {
  const Json* vocab = model.find("vocab");
  auto vocabulary = Vocabulary::from_json(vocab ? *vocab : Json(), where);
  RETURN_IF_ERROR(vocabulary);
  const auto text = [&](std::string_view key, std::string_view otherwise) {
    const Json* value = model.find(key);
    return value && value->is_string() ? value->string() : std::string(otherwise);
  };
  auto out = std::make_unique<WordPiece>();
  out->vocabulary_ = std::move(*vocabulary);
  const std::string unknown = text("unk_token", "[UNK]");
  out->unknown_ = out->vocabulary_.find(unknown);
  if (out->unknown_ < 0)
    return fail(Errc::bad_input,
                cat(where, ": the unknown token ", quote(unknown), " is not in the vocabulary"));
  if (const Json* longest = model.find("max_input_chars_per_word")) {
    if (!longest->is_integer() || longest->integer() < 0)
      return fail(Errc::bad_input,
                  cat(where, ": \"max_input_chars_per_word\" must be an integer from 0, found ",
                      quote(longest->dump(), 40)));
    out->max_word_characters_ = static_cast<std::size_t>(longest->integer());
  }
  for (std::size_t i = 0; i < out->vocabulary_.limit(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (!out->vocabulary_.has(id) || out->vocabulary_.piece(id).empty()) continue;
    if (!out->trie_.add(out->vocabulary_.piece(id), id))
      return fail(Errc::bad_input, cat(where, ": the pieces up to ", id, " take more than ",
                                       ByteTrie::max_nodes, " places"));
  }
  out->continued_ = out->trie_.walk(text("continuing_subword_prefix", "##"));
  return std::unique_ptr<Model>(std::move(out));
}

void WordPiece::encode(std::string_view word, Workspace&, std::vector<TokenId>& out) const {
  if (count_code_points(word) > max_word_characters_) return out.push_back(unknown_);
  const std::size_t before = out.size();
  for (std::size_t begin = 0; begin < word.size();) {
    TokenId best = -1;
    std::size_t best_end = begin;
    ByteTrie::Node at = begin == 0 ? ByteTrie::root : continued_;
    for (std::size_t end = begin; at != ByteTrie::none && end < word.size();) {
      at = trie_.step(at, static_cast<unsigned char>(word[end++]));
      if (at != ByteTrie::none && trie_.value(at) >= 0) {
        best = trie_.value(at);
        best_end = end;
      }
    }
    if (best < 0) {
      out.resize(before);
      return out.push_back(unknown_);
    }
    out.push_back(best);
    begin = best_end;
  }
}

// Files written before 2022 do not name their model; it is detected by its members.
std::string type_of(const Json& model) {
  if (const Json* type = model.find("type"); type && type->is_string()) return type->string();
  if (model.find("merges")) return "BPE";
  if (const Json* vocab = model.find("vocab"); vocab && vocab->is_array()) return "Unigram";
  if (model.find("continuing_subword_prefix")) return "WordPiece";
  return "WordLevel";
}

}  // namespace

bool can_take_bytes(const Json& model) {
  const auto empty = [&](std::string_view key) {
    const Json* value = model.find(key);
    return !value || !value->is_string() || value->string().empty();
  };
  const Json* fallback = model.find("byte_fallback");
  return type_of(model) == "BPE" && empty("continuing_subword_prefix") &&
         empty("end_of_word_suffix") && !(fallback && fallback->is_bool() && fallback->boolean());
}

Result<std::unique_ptr<Model>> make_model(const Json& model, bool raw_bytes,
                                          std::string_view where) {
  if (!model.is_object())
    return fail(Errc::bad_input, cat(where, ": must be an object, found ", model.type_name()));
  const std::string type = type_of(model);
  if (type == "BPE") return Bpe::from_json(model, raw_bytes, where);
  if (type == "Unigram") return Unigram::from_json(model, where);
  if (type == "WordPiece") return WordPiece::from_json(model, where);
  if (type == "WordLevel") return WordLevel::from_json(model, where);
  return fail(Errc::unsupported,
              cat(where, ": the model ", quote(type),
                  " is not supported; BPE, Unigram, WordPiece and WordLevel are"));
}

}  // namespace troupe::engine::tokenizer
