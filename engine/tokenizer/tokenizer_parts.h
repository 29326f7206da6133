// What a Tokenizer shares between its copies.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/tokenizer/added_tokens.h"
#include "engine/tokenizer/decoders/decoder.h"
#include "engine/tokenizer/models/model.h"
#include "engine/tokenizer/normalizers/normalizer.h"
#include "engine/tokenizer/post_processor.h"
#include "engine/tokenizer/pre_tokenizers/pre_tokenizer.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe::engine::tokenizer {

/// Workspaces between uses: an encode takes one and puts it back, so word caches live on without a
/// lock and without a thread's name.
class WorkspaceShelf {
 public:
  WorkspaceShelf() = default;
  WorkspaceShelf(const WorkspaceShelf&) = delete;
  ~WorkspaceShelf();
  /// nullptr when none lies there.
  std::unique_ptr<Workspace> take() const;
  void put(std::unique_ptr<Workspace> workspace) const;

 private:
  mutable std::array<std::atomic<Workspace*>, 8> places_{};
};

struct Tokenizer::Parts {
  std::unique_ptr<Model> model;
  std::unique_ptr<Normalizer> normalizer;       // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // may be null
  PostProcessor post_processor;
  DecoderChain decoders;
  Vocabulary added;           // added tokens that the model's vocabulary lacks
  std::vector<bool> special;  // by id
  // An added token that is looked for in normalized text is shown as it was looked for ("▁<unk>"),
  // and skipped as special only when that is a special token's text: as the library does since its
  // release 0.22.
  std::unordered_map<TokenId, std::string> shown;
  std::unordered_set<std::string> special_texts;
  TokenMatcher raw_matcher;  // tokens looked for in text as it came
  TokenMatcher normalized_matcher;
  std::optional<NamedToken> bos, eos, pad, unk;
  WorkspaceShelf shelf;

  bool has(TokenId id) const { return added.has(id) || model->vocabulary().has(id); }
  bool is_special(TokenId id) const {
    return id >= 0 && static_cast<std::size_t>(id) < special.size() &&
           special[static_cast<std::size_t>(id)];
  }
  std::string_view piece(TokenId id) const {
    if (!shown.empty())
      if (const auto found = shown.find(id); found != shown.end()) return found->second;
    return added.has(id) ? added.piece(id) : model->vocabulary().piece(id);
  }
  /// Whether decoding has a piece for this id.
  bool decodes(TokenId id, bool skip_special) const {
    return has(id) && !(skip_special && is_special(id) &&
                        (shown.empty() || special_texts.contains(std::string(piece(id)))));
  }
};

}  // namespace troupe::engine::tokenizer
