// PairSet: a set of pairs of numbers that is cleared often, without freeing or touching its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::engine::constraints {

class PairSet {
 public:
  void clear() {
    size_ = 0;
    if (++round_ != 0) return;
    slots_.assign(slots_.size(), {});
    round_ = 1;
  }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return slots_.capacity() * sizeof(Slot); }

  /// False when it was there.
  bool insert(std::int32_t first, std::int32_t second) {
    if (2 * size_ >= slots_.size()) grow();
    const std::uint64_t key =
        std::uint64_t{static_cast<std::uint32_t>(first)} << 32 | static_cast<std::uint32_t>(second);
    Slot& slot = find(key);
    if (slot.round == round_) return false;
    slot = {key, round_};
    ++size_;
    return true;
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t round = 0;  // of clear(), in which it was filled
  };

  /// The slot of the key, or an empty one.
  Slot& find(std::uint64_t key) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = (key * 0x9E3779B97F4A7C15U) >> 32 & mask;
    while (slots_[at].round == round_ && slots_[at].key != key) at = (at + 1) & mask;
    return slots_[at];
  }
  void grow() {
    std::vector<Slot> before(slots_.empty() ? 64 : 2 * slots_.size());
    before.swap(slots_);
    for (const Slot& each : before)
      if (each.round == round_) find(each.key) = each;
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
  std::uint32_t round_ = 1;
};

}  // namespace troupe::engine::constraints
