// The one place that asks the operating system for tensor memory.
#include <sys/mman.h>

#include <cstdlib>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/ops/cpu/access.h"

namespace troupe::engine::ops {
namespace {

constexpr std::size_t line = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20;

std::byte* allocate(std::size_t bytes) {
  const std::size_t alignment = bytes >= 2 * huge_page ? huge_page : line;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? line : rounded);
  if (memory == nullptr) {
    throw Failure({Errc::full, cat("out of memory: ", bytes,
                                   " bytes for one tensor were refused by the operating system; use a smaller "
                                   "model, batch or cache, or a machine with more memory")});
  }
  // Advice only: a kernel without huge pages serves small ones.
  if (alignment == huge_page) madvise(memory, rounded, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

}  // namespace

HostBuffer::HostBuffer(std::size_t bytes) : Buffer(bytes), data_(allocate(bytes)) {}
HostBuffer::~HostBuffer() { std::free(data_); }

}  // namespace troupe::engine::ops
