// Pipeline: the components of a Tokenizer (normalizer, pre-tokenizer, model, post-processor,
// decoder) and its tables of tokens. Immutable; copies of a Tokenizer share it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/tokenizer/base/added_tokens.h"
#include "engine/tokenizer/base/vocabulary.h"
#include "engine/tokenizer/decoders/decoder.h"
#include "engine/tokenizer/models/model.h"
#include "engine/tokenizer/normalizers/normalizer.h"
#include "engine/tokenizer/pipeline/post_processor.h"
#include "engine/tokenizer/pre_tokenizers/pre_tokenizer.h"

namespace troupe::engine::tokenizer {

/// Lock-free pool of workspaces: each encode() takes one and puts it back, so that word caches are
/// reused.
class WorkspacePool {
 public:
  WorkspacePool() = default;
  WorkspacePool(const WorkspacePool&) = delete;
  ~WorkspacePool();
  /// nullptr if the pool is empty.
  std::unique_ptr<Workspace> take() const;
  void put(std::unique_ptr<Workspace> workspace) const;

 private:
  mutable std::array<std::atomic<Workspace*>, 8> slots_{};
};

struct Pipeline {
  std::unique_ptr<Model> model;
  std::unique_ptr<Normalizer> normalizer;       // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // may be null
  PostProcessor post_processor;
  DecoderChain decoders;
  Vocabulary added;           // added tokens that the model's vocabulary lacks
  std::vector<bool> special;  // by id
  // An added token that is matched in normalized text is decoded to the normalized text ("▁<unk>"),
  // and skipped as special only if that is the text of a special token: as in the library since
  // release 0.22. AutoTokenizer, which reads tokenizer_config.json, skips it by its id.
  std::unordered_map<TokenId, std::string> display_texts;
  std::unordered_set<std::string> special_texts;
  bool special_by_id = false;
  TokenMatcher raw_matcher;  // tokens matched in the original text
  TokenMatcher normalized_matcher;
  std::optional<NamedToken> bos, eos, pad, unk;
  WorkspacePool workspaces;

  /// One more than the largest id.
  std::size_t vocab_size() const { return std::max(model->vocabulary().limit(), added.limit()); }
  bool has(TokenId id) const { return added.has(id) || model->vocabulary().has(id); }
  bool is_special(TokenId id) const {
    return id >= 0 && static_cast<std::size_t>(id) < special.size() &&
           special[static_cast<std::size_t>(id)];
  }
  std::string_view piece(TokenId id) const {
    if (!display_texts.empty())
      if (const auto found = display_texts.find(id); found != display_texts.end())
        return found->second;
    return added.has(id) ? added.piece(id) : model->vocabulary().piece(id);
  }
  /// Whether decoding writes a piece for this id.
  bool decodes(TokenId id, bool skip_special) const {
    return has(id) && !(skip_special && is_special(id) &&
                        (special_by_id || display_texts.empty() ||
                         special_texts.contains(std::string(piece(id)))));
  }
};

}  // namespace troupe::engine::tokenizer
