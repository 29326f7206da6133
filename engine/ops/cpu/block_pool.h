// BlockPool: the memory of one device. What tensors gave back serves the next ones: small blocks
// those of about their size, pages any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/ops/cpu/page_arena.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops {

/// Whether blocks are given out again: not under AddressSanitizer, which then finds the use of a
/// tensor after its end.
bool reuses_blocks();

/// Safe to use from any thread: tensors end where they end.
class BlockPool {
 public:
  /// 64-byte aligned; large blocks lie on huge pages where the kernel has them.
  struct Block {
    std::byte* data = nullptr;
    std::size_t bytes = 0;  ///< at least what was asked for
  };

  explicit BlockPool(bool reuses = reuses_blocks()) : reuses_(reuses) {}
  /// All blocks were given back.
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// Failure(full) when the machine has no room.
  Block take(std::size_t bytes);
  void give_back(Block block) noexcept;
  /// In whole blocks. `held` exceeds `peak` by no more than `slack`: what would, goes back to the
  /// system.
  MemoryUse use() const;

  /// Larger blocks (arenas of parameters, caches) go back to the system at once.
  static constexpr std::size_t largest_kept = std::size_t{256} << 20;
  /// Smaller ones are no pages of their own.
  static constexpr std::size_t least_paged = std::size_t{64} << 10;
  /// Bytes that may wait beyond the peak. Without it a step in which large blocks take turns with
  /// small ones would give pages to the system and ask for others each time. Small blocks that wait
  /// are within it alone.
  static constexpr std::size_t slack = std::size_t{4} << 20;

 private:
  static constexpr std::size_t first_power = 6, steps = 8, classes = (16 - first_power) * steps;
  /// Eight sizes to each power of two: at most an eighth of a block is lost.
  static std::size_t class_of(std::size_t bytes);
  static std::size_t bytes_of_class(std::size_t size_class);
  /// What is really taken for so many bytes.
  std::size_t rounded(std::size_t bytes) const;
  bool is_small(std::size_t bytes) const { return reuses_ && bytes < least_paged; }
  bool is_paged(std::size_t bytes) const {
    return reuses_ && bytes >= least_paged && bytes <= largest_kept;
  }
  std::byte* find(std::size_t bytes);
  void forget_small();

  const bool reuses_;
  mutable std::mutex mutex_;
  std::array<std::vector<std::byte*>, classes> small_;  // the last is the newest
  std::size_t small_bytes_ = 0;
  PageArena pages_;
  MemoryUse use_;
};

}  // namespace troupe::engine::ops
