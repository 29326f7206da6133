// Vocabulary: maps pieces to ids and back; all pieces are stored in one arena.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe {
class Json;
}

namespace troupe::engine::tokenizer {

/// A token's id. Negative means "none".
using TokenId = std::int32_t;

/// More pieces than any published tokenizer has; larger vocabularies are rejected before
/// allocation.
inline constexpr std::int64_t max_tokens = std::int64_t{1} << 22;

class Vocabulary {
 public:
  /// Reads {"piece": id, ...}. Errc::bad_input for ids that are negative, too large or given twice.
  static Result<Vocabulary> from_json(const Json& pieces, std::string_view where);

  /// Adds one piece. False when the piece or the id is taken.
  bool add(std::string_view piece, TokenId id);

  /// Assigns a piece to a free id. If another id has the same text, find() returns this id from now
  /// on.
  void set(std::string_view piece, TokenId id);

  TokenId find(std::string_view piece) const;
  /// The piece with this id; empty when there is none (see has()).
  std::string_view piece(TokenId id) const;
  bool has(TokenId id) const {
    return id >= 0 && static_cast<std::size_t>(id) < spans_.size() &&
           spans_[static_cast<std::size_t>(id)].taken;
  }
  /// One more than the largest id.
  std::size_t limit() const { return spans_.size(); }
  std::size_t count() const { return count_; }

 private:
  struct Span {
    std::uint32_t begin = 0;
    std::uint32_t size = 0;
    bool taken = false;
  };
  std::size_t slot_of(std::string_view piece) const;
  void grow();

  std::string arena_;
  std::vector<Span> spans_;     // by id
  std::vector<TokenId> table_;  // open addressing, a power of two
  std::size_t count_ = 0;
};

/// A special token with a role, from tokenizer_config.json or special_tokens_map.json. `id` is
/// empty if the vocabulary lacks the text.
struct NamedToken {
  std::string text;
  std::optional<TokenId> id;
};

}  // namespace troupe::engine::tokenizer
