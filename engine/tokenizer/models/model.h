// Model: the tokenization algorithm. It converts one word (a piece of text from the pre-tokenizer)
// into ids.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/tokenizer/base/vocabulary.h"

namespace troupe::engine::tokenizer {

/// Scratch memory that a model keeps between words; one per thread at a time.
class Workspace {
 public:
  virtual ~Workspace() = default;
  bool at_start = true;  ///< the encoded text begins at the start of the user's text
};

class Model {
 public:
  virtual ~Model() = default;
  const Vocabulary& vocabulary() const { return vocabulary_; }
  virtual std::unique_ptr<Workspace> make_workspace() const {
    return std::make_unique<Workspace>();
  }
  /// Appends the ids of `word` (valid UTF-8, not empty). Safe from several threads when each brings
  /// its own workspace.
  virtual void encode(std::string_view word, Workspace& workspace,
                      std::vector<TokenId>& out) const = 0;

 protected:
  Vocabulary vocabulary_;
};

/// Creates a model from the "model" object of tokenizer.json; `where` starts each message. With
/// `raw_bytes` the words are bytes instead of the characters of the byte alphabet (a final
/// byte-level pre-tokenizer need not map them); only if the model can_take_bytes().
/// Errc::unsupported, by name, for other algorithms.
Result<std::unique_ptr<Model>> make_model(const Json& model, bool raw_bytes,
                                          std::string_view where);

/// True for a BPE without prefixes and suffixes.
bool can_take_bytes(const Json& model);

}  // namespace troupe::engine::tokenizer
