#include "engine/tokenizer/models/unigram.h"

#include <algorithm>
#include <limits>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/tokenizer/base/byte_alphabet.h"
#include "engine/tokenizer/models/word_cache.h"

namespace troupe::engine::tokenizer {

namespace {
constexpr double unknown_penalty = 10;  // SentencePiece's kUnkPenalty: an unknown character is that
                                        // much worse than the worst piece
}

struct Unigram::Scratch : Workspace {
  /// The best segmentation of the text up to here: its last piece and where that begins.
  struct Node {
    double score = 0;
    std::size_t begin = 0;
    TokenId id = -1;  // -1: no way yet
  };
  WordCache cache;
  std::vector<Node> nodes;
  std::vector<TokenId> ids;
};

std::unique_ptr<Workspace> Unigram::make_workspace() const {
  return std::make_unique<Scratch>();
}

Result<std::unique_ptr<Model>> Unigram::from_json(const Json& model, std::string_view where) {
  auto out = std::make_unique<Unigram>();
  RETURN_IF_ERROR(out->read_pieces(model, where));
  RETURN_IF_ERROR(out->read_options(model, where));
  for (std::size_t byte = 0; byte < 256; ++byte)
    out->byte_ids_[byte] = out->vocabulary_.find(fallback_piece(byte));
  return std::unique_ptr<Model>(std::move(out));
}

Result<> Unigram::read_pieces(const Json& model, std::string_view where) {
  const Json* vocab = model.find("vocab");
  if (!vocab || !vocab->is_array())
    return fail(Errc::bad_input,
                cat(where, ": \"vocab\" must be an array of pieces and scores, found ",
                    vocab ? vocab->type_name() : "nothing"));
  const auto& pieces = vocab->array();
  if (static_cast<std::int64_t>(pieces.size()) > max_tokens)
    return fail(Errc::bad_input,
                cat(where, ": ", pieces.size(), " pieces; at most ", max_tokens, " are read"));
  double worst = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Json& pair = pieces[i];
    if (!pair.is_array() || pair.array().size() != 2 || !pair.array()[0].is_string() ||
        !pair.array()[1].is_number())
      return fail(Errc::bad_input,
                  cat(where, ": piece ", i, " must be a pair of text and score, found ",
                      quote(pair.dump(), 60)));
    const std::string& piece = pair.array()[0].string();
    const auto id = static_cast<TokenId>(i);
    vocabulary_.set(piece, id);
    if (!piece.empty() && !trie_.add(piece, id))
      return fail(Errc::bad_input, cat(where, ": the pieces up to ", i, " take more than ",
                                       ByteTrie::max_nodes, " places"));
    scores_.push_back(pair.array()[1].number());
    worst = std::min(worst, scores_.back());
  }
  unknown_score_ = worst - unknown_penalty;
  return {};
}

Result<> Unigram::read_options(const Json& model, std::string_view where) {
  if (const Json* fallback = model.find("byte_fallback"))
    byte_fallback_ = fallback->is_bool() && fallback->boolean();
  const Json* unknown = model.find("unk_id");
  if (!unknown || unknown->is_null()) return {};
  if (!unknown->is_integer() || unknown->integer() < 0 ||
      static_cast<std::size_t>(unknown->integer()) >= scores_.size())
    return fail(Errc::bad_input, cat(where, ": \"unk_id\" must be an id from 0 to ",
                                     static_cast<std::int64_t>(scores_.size()) - 1, ", found ",
                                     quote(unknown->dump(), 40)));
  unknown_ = static_cast<TokenId>(unknown->integer());
  return {};
}

// Keeps the path that was found first of equal sums, as the library does.
void Unigram::find_best_path(std::string_view word, Scratch& scratch) const {
  auto& nodes = scratch.nodes;
  nodes.assign(word.size() + 1, {});
  for (std::size_t begin = 0; begin < word.size();) {
    const double here = nodes[begin].score;
    const std::size_t character = utf8_length(word[begin]);
    const auto offer = [&](std::size_t end, TokenId id, double score) {
      auto& node = nodes[end];
      if (node.id < 0 || here + score > node.score) node = {here + score, begin, id};
    };
    bool single = false;
    ByteTrie::Node at = ByteTrie::root;
    for (std::size_t end = begin; end < word.size();) {
      at = trie_.step(at, static_cast<unsigned char>(word[end++]));
      if (at == ByteTrie::none) break;
      const TokenId id = trie_.value(at);
      if (id < 0) continue;
      offer(end, id, scores_[static_cast<std::size_t>(id)]);
      single = single || end - begin == character;
    }
    if (!single) {
      if (unknown_ < 0)
        throw Failure({Errc::bad_input,
                       cat("the tokenizer has no piece for ", quote(word.substr(begin, character)),
                           " and no unknown token (\"unk_id\")")});
      offer(begin + character, unknown_, unknown_score_);
    }
    begin += character;
  }
}

// One piece of the path, or a run of unknown characters.
void Unigram::write(std::string_view text, std::vector<TokenId>& out) const {
  if (const TokenId id = vocabulary_.find(text); id >= 0) return out.push_back(id);
  const auto id_of = [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
  if (!byte_fallback_ ||
      std::any_of(text.begin(), text.end(), [&](char byte) { return id_of(byte) < 0; }))
    return out.push_back(unknown_);
  for (const char byte : text) out.push_back(id_of(byte));
}

void Unigram::encode(std::string_view word, Workspace& workspace, std::vector<TokenId>& out) const {
  auto& scratch = static_cast<Scratch&>(workspace);
  scratch.cache.append(word, out, [&]() -> const std::vector<TokenId>& {
    encode_uncached(word, scratch);
    return scratch.ids;
  });
}

void Unigram::encode_uncached(std::string_view word, Scratch& scratch) const {
  find_best_path(word, scratch);
  // The path is known from its end: the links are reversed first.
  auto& nodes = scratch.nodes;
  std::size_t following = word.size();
  for (std::size_t end = word.size(); end > 0;) {
    const std::size_t begin = nodes[end].begin;
    nodes[end].begin = following;
    following = end;
    end = begin;
  }
  scratch.ids.clear();
  std::size_t from = 0;
  for (std::size_t end = following; from < word.size(); end = nodes[end].begin) {
    const bool fused =
        nodes[end].id == unknown_ && end < word.size() && nodes[nodes[end].begin].id == unknown_;
    if (fused) continue;
    write(word.substr(from, end - from), scratch.ids);
    from = end;
  }
}

}  // namespace troupe::engine::tokenizer
