// BlockPool: the memory of one device. Blocks that tensors gave back serve the next tensors of about their size, because fresh pages cost
// a fault and a wipe each; the kernel gives them as huge pages where it may.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/ops/device.h"

namespace troupe::engine::ops {

/// Whether blocks are given out again: not under AddressSanitizer, which then finds the use of a tensor after its end.
bool reuses_blocks();

/// Safe to use from any thread: tensors end where they end.
class BlockPool {
 public:
  /// 64-byte aligned; large blocks lie on huge pages.
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
  /// In whole blocks. `held` never exceeds `peak`: what would, goes back to the system, the longest unused first.
  MemoryUse use() const;

  /// Larger blocks (arenas of parameters, caches) go back to the system at once.
  static constexpr std::size_t largest_kept = std::size_t{256} << 20;

 private:
  struct Free {
    std::byte* data;
    std::uint64_t since;
  };
  static constexpr std::size_t first_power = 6, steps = 8, classes = (29 - first_power) * steps;
  /// Eight sizes to each power of two: at most an eighth of a block is lost.
  static std::size_t class_of(std::size_t bytes);
  static std::size_t bytes_of_class(std::size_t size_class);
  Block reuse(std::size_t bytes);
  void trim(std::size_t room);

  const bool reuses_;
  mutable std::mutex mutex_;
  std::array<std::vector<Free>, classes> free_;  // the last is the newest
  std::uint64_t clock_ = 0;
  MemoryUse use_;
};

}  // namespace troupe::engine::ops
