// The merges of a BPE: from a pair of ids to its rank and the id of the joined piece, in one flat
// hash table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/tokenizer/base/vocabulary.h"

namespace troupe::engine::tokenizer {

class MergeTable {
 public:
  static constexpr std::uint32_t no_rank = std::numeric_limits<std::uint32_t>::max();
  struct Merge {
    std::uint32_t rank = no_rank;
    TokenId id = -1;
  };

  explicit MergeTable(std::size_t count = 0) {
    std::size_t size = 16;
    while (size < 2 * count) size *= 2;
    slots_.resize(size);
  }

  /// A pair given twice keeps its last rank, as in Hugging Face's hash map.
  void add(TokenId left, TokenId right, Merge merge) {
    Slot& slot = slots_[slot_of(key_of(left, right))];
    slot = {key_of(left, right), merge};
    ranks_ = std::max<std::size_t>(ranks_, merge.rank + std::size_t{1});
  }
  /// One more than the largest rank.
  std::size_t ranks() const { return ranks_; }

  /// Determines whether every piece is produced by merges of lower rank than those that use it, as
  /// in every trained table.
  void find_order() {
    std::vector<std::uint32_t> made;  // by id: the last rank that makes it, plus one
    for (const Slot& slot : slots_) {
      if (slot.key == empty) continue;
      const auto id = static_cast<std::size_t>(slot.merge.id);
      if (made.size() <= id) made.resize(id + 1);
      made[id] = std::max(made[id], slot.merge.rank + 1);
    }
    in_order_ = std::all_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
      const auto early = [&](std::uint64_t id) {
        return id >= made.size() || made[id] <= slot.merge.rank;
      };
      return slot.key == empty || (early(slot.key >> 32) && early(slot.key & 0xFFFFFFFFu));
    });
  }
  bool in_order() const { return in_order_; }

  /// rank == no_rank when the pair does not merge.
  Merge find(TokenId left, TokenId right) const {
    return slots_[slot_of(key_of(left, right))].merge;
  }

 private:
  static constexpr std::uint64_t empty = std::numeric_limits<std::uint64_t>::max();
  struct Slot {
    std::uint64_t key = empty;
    Merge merge;
  };
  static std::uint64_t key_of(TokenId left, TokenId right) {
    return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32) |
           static_cast<std::uint32_t>(right);
  }
  std::size_t slot_of(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = (key * 0x9E3779B97F4A7C15ull >> 20) & mask;
    while (slots_[slot].key != empty && slots_[slot].key != key) slot = (slot + 1) & mask;
    return slot;
  }
  std::vector<Slot> slots_;
  std::size_t ranks_ = 0;
  bool in_order_ = false;
};

}  // namespace troupe::engine::tokenizer
