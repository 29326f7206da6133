#include "engine/ops/memory/block_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/errors/error.h"
#include "engine/base/files/environment_error.h"
#include "engine/base/text/text.h"

namespace troupe::engine::ops {
namespace {

constexpr std::size_t line = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20;

/// Memory of the machine. Read once, because every allocation checks it.
std::size_t machine_memory() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                            static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

[[noreturn]] void refuse(std::size_t bytes) {
  throw Failure({Errc::full, cat(out_of_memory(cat("one tensor needs ", bytes, " bytes")),
                                 "; use a smaller model, batch or cache, or more memory")});
}

/// Returns nullptr if there is no memory.
std::byte* allocate(std::size_t bytes) {
  const std::size_t alignment = bytes >= 2 * huge_page ? huge_page : line;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  // Advice only: a kernel without huge pages provides small ones.
  if (memory != nullptr && alignment == huge_page) madvise(memory, rounded, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

std::byte* older_than(const std::byte* block) {
  std::byte* older = nullptr;
  std::memcpy(&older, block, sizeof older);
  return older;
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
  const std::size_t last = std::max<std::size_t>((bytes + line - 1) / line, 1) * line -
                           1;  // small classes hold whole lines too
  const auto power = static_cast<std::size_t>(std::bit_width(last)) - 1;  // 2^power <= last
  if (power < first_power) return 0;
  return (power - first_power) * steps + (last >> (power - 3)) - steps + 1;
}

std::size_t BlockPool::bytes_of_class(std::size_t size_class) {
  const std::size_t power = size_class / steps + first_power;
  return (std::size_t{1} << power) + (size_class % steps << (power - 3));
}

std::size_t BlockPool::rounded(std::size_t bytes) const {
  if (is_small(bytes)) return bytes_of_class(class_of(bytes));
  if (is_paged(bytes)) return (bytes + PageArena::page - 1) / PageArena::page * PageArena::page;
  return std::max(bytes, line);
}

BlockPool::~BlockPool() {
  forget_small();
}

void BlockPool::forget_small() {
  for (std::byte*& newest : small_)
    while (newest != nullptr) std::free(std::exchange(newest, older_than(newest)));
  small_bytes_ = 0;
}

/// Returns nullptr if there is no memory.
std::byte* BlockPool::find(std::size_t bytes) {
  if (is_paged(bytes)) return pages_.take(bytes);
  if (is_small(bytes)) {
    std::byte*& newest = small_[class_of(bytes)];
    if (newest != nullptr) {
      small_bytes_ -= bytes;
      return std::exchange(newest, older_than(newest));
    }
  }
  return allocate(bytes);
}

BlockPool::Block BlockPool::take(std::size_t bytes) {
  // The kernel overcommits and kills later: a request that can never fit is rejected now.
  if (bytes > machine_memory()) refuse(bytes);
  const std::lock_guard lock(mutex_);
  Block block{nullptr, rounded(bytes)};
  block.data = find(block.bytes);
  const std::size_t now = use_.now + block.bytes, peak = std::max(use_.peak, now);
  pages_.release(block.data == nullptr ? 0 : peak + slack - now - small_bytes_);
  if (block.data == nullptr) {
    forget_small();
    block.data = find(block.bytes);
  }
  if (block.data == nullptr) refuse(bytes);
  use_.now = now;
  use_.peak = peak;
  return block;
}

void BlockPool::give_back(Block block) noexcept {
  const std::lock_guard lock(mutex_);
  use_.now -= block.bytes;
  if (is_paged(block.bytes)) {
    pages_.give_back(block.data, block.bytes);
  } else if (is_small(block.bytes) && small_bytes_ + block.bytes <= slack) {
    std::byte*& newest = small_[class_of(block.bytes)];
    std::memcpy(block.data, &newest, sizeof newest);
    newest = block.data;
    small_bytes_ += block.bytes;
  } else {
    std::free(block.data);
  }
}

MemoryUse BlockPool::use() const {
  const std::lock_guard lock(mutex_);
  MemoryUse use = use_;
  use.held = use.now + small_bytes_ + pages_.warm();
  return use;
}

}  // namespace troupe::engine::ops
