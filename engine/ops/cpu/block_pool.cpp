// The one place that asks the operating system for tensor memory.
#include "engine/ops/cpu/block_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "engine/base/check.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

namespace troupe::engine::ops {
namespace {

constexpr std::size_t line = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t near_classes = 2;  // a block may serve a tensor that is up to about a fifth smaller

/// Asked for once: it is a call of the system, and each tensor wants to know.
std::size_t machine_memory() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

[[noreturn]] void refuse(std::size_t bytes) {
  throw Failure({Errc::full, cat("out of memory: one tensor needs ", bytes, " bytes, this machine has ", machine_memory(),
                                 " in all; use a smaller model, batch or cache, or a machine with more memory")});
}

/// nullptr when there is none.
std::byte* allocate(std::size_t bytes) {
  const std::size_t alignment = bytes >= 2 * huge_page ? huge_page : line;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  // Advice only: a kernel without huge pages serves small ones.
  if (memory != nullptr && alignment == huge_page) madvise(memory, rounded, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

}  // namespace

bool reuses_blocks() {
#if defined(__SANITIZE_ADDRESS__)
  return false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  return false;
#else
  return true;
#endif
#else
  return true;
#endif
}

std::size_t BlockPool::class_of(std::size_t bytes) {
  const std::size_t last = std::max<std::size_t>((bytes + line - 1) / line, 1) * line - 1;  // small classes hold whole lines too
  const auto power = static_cast<std::size_t>(std::bit_width(last)) - 1;                    // 2^power <= last
  if (power < first_power) return 0;
  return (power - first_power) * steps + (last >> (power - 3)) - steps + 1;
}

std::size_t BlockPool::bytes_of_class(std::size_t size_class) {
  const std::size_t power = size_class / steps + first_power;
  return (std::size_t{1} << power) + (size_class % steps << (power - 3));
}

BlockPool::~BlockPool() { trim(0); }

/// The newest free block of about this size, or none.
BlockPool::Block BlockPool::reuse(std::size_t bytes) {
  const std::size_t wanted = class_of(bytes);
  for (std::size_t size_class = wanted; size_class < std::min<std::size_t>(wanted + near_classes + 1, classes); ++size_class) {
    auto& blocks = free_[size_class];
    if (blocks.empty()) continue;
    const Block block{blocks.back().data, bytes_of_class(size_class)};
    blocks.pop_back();
    return block;
  }
  return {};
}

/// Gives free blocks to the system, the longest unused first, until no more than `room` bytes are held.
void BlockPool::trim(std::size_t room) {
  while (use_.held > room) {
    std::vector<Free>* oldest = nullptr;
    for (auto& blocks : free_)
      if (!blocks.empty() && (oldest == nullptr || blocks.front().since < oldest->front().since)) oldest = &blocks;
    if (oldest == nullptr) return;
    std::free(oldest->front().data);
    oldest->erase(oldest->begin());
    use_.held -= bytes_of_class(static_cast<std::size_t>(oldest - free_.data()));
  }
}

BlockPool::Block BlockPool::take(std::size_t bytes) {
  // The kernel promises more than there is and kills later: what can never fit is refused now.
  if (bytes > machine_memory()) refuse(bytes);
  const bool kept = reuses_ && bytes <= largest_kept;
  const std::lock_guard lock(mutex_);
  Block block = kept ? reuse(bytes) : Block{};
  const bool fresh = block.data == nullptr;
  if (fresh) {
    block.bytes = kept ? bytes_of_class(class_of(bytes)) : std::max(bytes, line);
    const std::size_t peak = std::max(use_.peak, use_.now + block.bytes);
    trim(peak - block.bytes);
    block.data = allocate(block.bytes);
    if (block.data == nullptr) {
      trim(use_.now);
      block.data = allocate(block.bytes);
    }
    if (block.data == nullptr) refuse(bytes);
    use_.held += block.bytes;
  }
  use_.now += block.bytes;
  use_.peak = std::max(use_.peak, use_.now);
  return block;
}

void BlockPool::give_back(Block block) noexcept {
  const std::lock_guard lock(mutex_);
  use_.now -= block.bytes;
  if (reuses_ && block.bytes <= largest_kept) {
    free_[class_of(block.bytes)].push_back({block.data, ++clock_});
  } else {
    std::free(block.data);
    use_.held -= block.bytes;
  }
}

MemoryUse BlockPool::use() const {
  const std::lock_guard lock(mutex_);
  return use_;
}

}  // namespace troupe::engine::ops
