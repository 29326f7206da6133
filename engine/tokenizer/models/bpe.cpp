#include "engine/tokenizer/models/bpe.h"

#include <algorithm>
#include <utility>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/tokenizer/base/byte_alphabet.h"
#include "engine/tokenizer/models/bpe_merge.h"
#include "engine/tokenizer/models/word_cache.h"

namespace troupe::engine::tokenizer {

namespace {
constexpr std::string_view space_sign = "\u2581";
}

struct Bpe::Scratch : Workspace {
  WordCache cache;
  MergeScratch merge;
  std::vector<TokenId> symbols;
  std::string unit;  // a character with its prefix and suffix
};

std::unique_ptr<Workspace> Bpe::make_workspace() const {
  return std::make_unique<Scratch>();
}

Result<std::unique_ptr<Model>> Bpe::from_json(const Json& model, bool raw_bytes,
                                              std::string_view where) {
  auto out = std::make_unique<Bpe>();
  const Json* vocab = model.find("vocab");
  auto vocabulary = Vocabulary::from_json(vocab ? *vocab : Json(), where);
  RETURN_IF_ERROR(vocabulary);
  out->vocabulary_ = std::move(*vocabulary);
  out->raw_bytes_ = raw_bytes;
  RETURN_IF_ERROR(out->read_options(model, where));
  RETURN_IF_ERROR(out->read_merges(model, where));
  out->prepare_bytes();
  out->cut_at_spaces_ = out->spaces_start_words();
  return std::unique_ptr<Model>(std::move(out));
}

Result<> Bpe::read_options(const Json& model, std::string_view where) {
  const auto flag = [&](std::string_view key) {
    const Json* value = model.find(key);
    return value && value->is_bool() && value->boolean();
  };
  const auto text = [&](std::string_view key) {
    const Json* value = model.find(key);
    return value && value->is_string() ? value->string() : std::string();
  };
  byte_fallback_ = flag("byte_fallback");
  fuse_unknown_ = flag("fuse_unk");
  ignore_merges_ = flag("ignore_merges");
  prefix_ = text("continuing_subword_prefix");
  suffix_ = text("end_of_word_suffix");
  if (const Json* dropout = model.find("dropout");
      dropout && dropout->is_number() && dropout->number() != 0)
    return fail(Errc::unsupported, cat(where, ": BPE with dropout ", dropout->number(),
                                       " encodes at random; set it to null"));
  if (const std::string unknown = text("unk_token"); !unknown.empty()) {
    unknown_ = vocabulary_.find(unknown);
    if (unknown_ < 0)
      return fail(Errc::bad_input,
                  cat(where, ": the unknown token ", quote(unknown), " is not in the vocabulary"));
  }
  return {};
}

Result<> Bpe::read_merges(const Json& model, std::string_view where) {
  const Json* list = model.find("merges");
  if (!list || !list->is_array())
    return fail(Errc::bad_input, cat(where, ": \"merges\" must be an array, found ",
                                     list ? list->type_name() : "nothing"));
  const auto& merges = list->array();
  if (static_cast<std::int64_t>(merges.size()) > max_tokens)
    return fail(Errc::bad_input,
                cat(where, ": ", merges.size(), " merges; at most ", max_tokens, " are read"));
  merges_ = MergeTable(merges.size());
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const Json& merge = merges[rank];
    Result<> done;
    if (merge.is_string()) {
      const std::string& text = merge.string();
      const auto space = text.find(' ');
      if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
        return fail(Errc::bad_input,
                    cat(where, ": merge ", rank,
                        " must be two pieces with one space between them, found ", quote(text)));
      done = add_merge(std::string_view(text).substr(0, space),
                       std::string_view(text).substr(space + 1), rank, where);
    } else if (merge.is_array() && merge.array().size() == 2 && merge.array()[0].is_string() &&
               merge.array()[1].is_string()) {
      done = add_merge(merge.array()[0].string(), merge.array()[1].string(), rank, where);
    } else {
      return fail(Errc::bad_input, cat(where, ": merge ", rank, " must be a pair of pieces, found ",
                                       quote(merge.dump(), 60)));
    }
    if (!done) return done;
  }
  merges_.find_order();
  return {};
}

Result<> Bpe::add_merge(std::string_view left, std::string_view right, std::size_t rank,
                        std::string_view where) {
  const auto missing = [&](std::string_view piece) {
    return fail(Errc::bad_input,
                cat(where, ": merge ", rank, " (", quote(left), " and ", quote(right),
                    ") needs the piece ", quote(piece), ", which is not in the vocabulary"));
  };
  const TokenId a = vocabulary_.find(left), b = vocabulary_.find(right);
  if (a < 0) return missing(left);
  if (b < 0) return missing(right);
  const std::string whole = cat(left, right.substr(std::min(right.size(), prefix_.size())));
  const TokenId joined = vocabulary_.find(whole);
  if (joined < 0) return missing(whole);
  merges_.add(a, b, {static_cast<std::uint32_t>(rank), joined});
  return {};
}

void Bpe::prepare_bytes() {
  for (std::size_t byte = 0; byte < 256; ++byte)
    byte_ids_[byte] = vocabulary_.find(raw_bytes_ ? byte_characters()[byte] : fallback_piece(byte));
  for (std::size_t c = 0; c < 128; ++c)
    ascii_ids_[c] = vocabulary_.find(std::string(1, static_cast<char>(c)));
  if (!raw_bytes_ || !ignore_merges_) return;
  std::string bytes;
  for (std::size_t id = 0; id < vocabulary_.limit(); ++id) {
    bytes.clear();
    const auto number = static_cast<TokenId>(id);
    if (vocabulary_.has(number) && append_bytes_of(bytes, vocabulary_.piece(number)))
      words_.add(bytes, number);
  }
}

bool Bpe::spaces_start_words() const {
  if (raw_bytes_ || ignore_merges_ || !prefix_.empty() || !suffix_.empty() ||
      vocabulary_.find(space_sign) < 0)
    return false;
  for (std::size_t id = 0; id < vocabulary_.limit(); ++id) {
    const std::string_view piece = vocabulary_.piece(static_cast<TokenId>(id));
    std::size_t at = 0;
    while (piece.substr(at).starts_with(space_sign)) at += space_sign.size();
    if (piece.find(space_sign, at) != std::string_view::npos) return false;
  }
  return true;
}

// SentencePiece texts arrive whole; if no piece crosses the start of a word they are encoded and
// cached word by word.
void Bpe::encode(std::string_view word, Workspace& workspace, std::vector<TokenId>& out) const {
  auto& scratch = static_cast<Scratch&>(workspace);
  if (!cut_at_spaces_ || word.size() <= WordCache::max_cached_word)
    return encode_word(word, scratch, out);
  for (std::size_t from = 0; from < word.size();) {
    std::size_t at = from;
    while (word.substr(at).starts_with(space_sign)) at += space_sign.size();
    const std::size_t end = std::min(word.find(space_sign, at), word.size());
    encode_word(word.substr(from, end - from), scratch, out);
    from = end;
  }
}

void Bpe::encode_word(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const {
  scratch.cache.append(word, out, [&]() -> const std::vector<TokenId>& {
    encode_uncached(word, scratch);
    return scratch.symbols;
  });
}

void Bpe::encode_uncached(std::string_view word, Scratch& scratch) const {
  scratch.symbols.clear();
  if (ignore_merges_) {
    if (const TokenId id = (raw_bytes_ ? words_ : vocabulary_).find(word); id >= 0)
      return scratch.symbols.push_back(id);
  }
  if (raw_bytes_) {
    split_bytes(word, scratch.symbols);
  } else {
    split_characters(word, scratch);
  }
  merge_pairs(scratch.symbols, merges_, scratch.merge);
}

void Bpe::split_bytes(std::string_view word, std::vector<TokenId>& symbols) const {
  bool unknown_before = false;
  for (const char c : word) {
    const TokenId id = byte_ids_[static_cast<unsigned char>(c)];
    if (id >= 0) {
      symbols.push_back(id);
    } else if (unknown_ >= 0 && !(fuse_unknown_ && unknown_before)) {
      symbols.push_back(unknown_);
    }
    unknown_before = id < 0;
  }
}

TokenId Bpe::find_character(std::string_view character) const {
  if (character.size() == 1) return ascii_ids_[static_cast<unsigned char>(character[0]) & 127];
  return vocabulary_.find(character);
}

// All bytes of a character that has no piece, if every one of them has a <0x..> piece.
bool Bpe::fall_back(std::string_view character, std::vector<TokenId>& symbols) const {
  for (const char c : character)
    if (byte_ids_[static_cast<unsigned char>(c)] < 0) return false;
  for (const char c : character) symbols.push_back(byte_ids_[static_cast<unsigned char>(c)]);
  return true;
}

// The unknown token is written at the next known piece, not at once: byte pieces overtake it, as in
// the library.
void Bpe::split_characters(std::string_view word, Scratch& scratch) const {
  bool unknown = false;
  const auto flush = [&] {
    if (std::exchange(unknown, false)) scratch.symbols.push_back(unknown_);
  };
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t size = utf8_length(word[at]);
    std::string_view unit = word.substr(at, size);
    const bool first = at == 0, last = at + size == word.size();
    at += size;
    if ((!first && !prefix_.empty()) || (last && !suffix_.empty())) {
      scratch.unit = cat(first ? "" : prefix_, unit, last ? suffix_ : "");
      unit = scratch.unit;
    }
    const TokenId id = find_character(unit);
    if (id >= 0) {
      flush();
      scratch.symbols.push_back(id);
    } else if (byte_fallback_ && fall_back(unit, scratch.symbols)) {
    } else if (unknown_ >= 0) {
      if (!fuse_unknown_) flush();
      unknown = true;
    }
  }
  flush();
}

}  // namespace troupe::engine::tokenizer
