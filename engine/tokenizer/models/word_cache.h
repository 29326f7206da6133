// Cache of encoded words and their ids in flat arrays: most words of a text repeat.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/base/vocabulary.h"

namespace troupe::engine::tokenizer {

class WordCache {
 public:
  /// Longer words rarely repeat.
  static constexpr std::size_t max_cached_word = 48;

  static std::uint64_t hash(std::string_view word) { return std::hash<std::string_view>{}(word); }

  /// The ids of `word`, or an empty span.
  std::span<const TokenId> find(std::string_view word, std::uint64_t hash) const {
    if (slots_.empty()) return {};
    for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
      const Slot& slot = slots_[at];
      if (slot.count == 0) return {};
      if (slot.hash == hash && std::string_view(words_).substr(slot.word, slot.size) == word)
        return std::span(ids_).subspan(slot.first, slot.count);
    }
  }

  /// Remembers a word; forgets everything first when the table is half full.
  void add(std::string_view word, std::uint64_t hash, std::span<const TokenId> ids) {
    if (ids.empty() || word.size() > max_cached_word) return;
    if (slots_.empty() || 2 * used_ > mask) clear();
    std::size_t at = hash & mask;
    while (slots_[at].count != 0) at = (at + 1) & mask;
    slots_[at] = {hash, static_cast<std::uint32_t>(words_.size()),
                  static_cast<std::uint32_t>(ids_.size()), static_cast<std::uint16_t>(word.size()),
                  static_cast<std::uint16_t>(ids.size())};
    words_.append(word);
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    ++used_;
  }

  /// Appends the ids of `word` to `out`: known ones, or those that encode() returns and that are
  /// remembered.
  template <class Encode>
  void append(std::string_view word, std::vector<TokenId>& out, const Encode& encode) {
    const bool brief = word.size() <= max_cached_word;
    const std::uint64_t hash_of_word = brief ? hash(word) : 0;
    if (brief) {
      if (const auto known = find(word, hash_of_word); !known.empty()) {
        out.insert(out.end(), known.begin(), known.end());
        return;
      }
    }
    const std::vector<TokenId>& ids = encode();
    if (brief) add(word, hash_of_word, ids);
    out.insert(out.end(), ids.begin(), ids.end());
  }

 private:
  static constexpr std::size_t mask = (1u << 15) - 1;
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t word = 0;
    std::uint32_t first = 0;
    std::uint16_t size = 0;
    std::uint16_t count = 0;
  };
  void clear() {
    slots_.assign(mask + 1, {});
    words_.clear();
    ids_.clear();
    used_ = 0;
  }
  std::vector<Slot> slots_;
  std::string words_;
  std::vector<TokenId> ids_;
  std::size_t used_ = 0;
};

}  // namespace troupe::engine::tokenizer
