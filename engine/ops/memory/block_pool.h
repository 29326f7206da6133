// BlockPool: the memory of one device. Freed blocks are reused: small blocks for tensors of about
// the same size, pages for any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "engine/ops/memory/memory_use.h"
#include "engine/ops/memory/page_arena.h"

namespace troupe::engine::ops {

/// Returns whether blocks are reused: not under AddressSanitizer, which then finds the use of a
/// freed tensor.
bool reuses_blocks();

/// Thread-safe: tensors are freed on any thread.
class BlockPool {
 public:
  /// 64-byte aligned; large blocks lie on huge pages where the kernel has them.
  struct Block {
    std::byte* data = nullptr;
    std::size_t bytes = 0;  ///< at least the requested size
  };

  explicit BlockPool(bool reuses = reuses_blocks()) : reuses_(reuses) {}
  /// All blocks must have been given back.
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// Failure(full) if the machine has no memory.
  Block take(std::size_t bytes);
  void give_back(Block block) noexcept;
  /// Memory in whole blocks. `held` exceeds `peak` by at most `slack`; the rest is returned to the
  /// system.
  MemoryUse use() const;

  /// Larger blocks (arenas of parameters, caches) are returned to the system immediately.
  static constexpr std::size_t max_kept = std::size_t{256} << 20;
  /// Smaller blocks do not get pages of their own.
  static constexpr std::size_t min_paged = std::size_t{64} << 10;
  /// Free bytes that may be kept beyond the peak. Without it a step that alternates between large
  /// and small blocks would return pages to the system and request others each time. Free small
  /// blocks are limited to it.
  static constexpr std::size_t slack = std::size_t{4} << 20;

 private:
  static constexpr std::size_t first_power = 6, steps = 8, classes = (16 - first_power) * steps;
  /// Eight sizes to each power of two: at most an eighth of a block is lost.
  static std::size_t class_of(std::size_t bytes);
  static std::size_t bytes_of_class(std::size_t size_class);
  /// Returns the size of the block that holds `bytes` bytes.
  std::size_t rounded(std::size_t bytes) const;
  bool is_small(std::size_t bytes) const { return reuses_ && bytes < min_paged; }
  bool is_paged(std::size_t bytes) const {
    return reuses_ && bytes >= min_paged && bytes <= max_kept;
  }
  std::byte* find(std::size_t bytes);
  void forget_small();

  const bool reuses_;
  mutable std::mutex mutex_;
  /// The newest free block of each class; a free block begins with the address of the one before
  /// it, so that no memory is needed to give one back.
  std::array<std::byte*, classes> small_{};
  std::size_t small_bytes_ = 0;
  PageArena pages_;
  MemoryUse use_;
};

}  // namespace troupe::engine::ops
