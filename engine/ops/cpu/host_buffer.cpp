// The one place that asks the operating system for tensor memory.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/ops/cpu/access.h"

namespace troupe::engine::ops {
namespace {

constexpr std::size_t line = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20;

std::size_t machine_memory() { return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

[[noreturn]] void refuse(std::size_t bytes) {
  throw Failure({Errc::full, cat("out of memory: one tensor needs ", bytes, " bytes, this machine has ", machine_memory(),
                                 " in all; use a smaller model, batch or cache, or a machine with more memory")});
}

std::byte* allocate(std::size_t bytes) {
  // The kernel promises more than there is and kills later: what can never fit is refused now.
  if (bytes > machine_memory()) refuse(bytes);
  const std::size_t alignment = bytes >= 2 * huge_page ? huge_page : line;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? line : rounded);
  if (memory == nullptr) refuse(bytes);
  // Advice only: a kernel without huge pages serves small ones.
  if (alignment == huge_page) madvise(memory, rounded, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

}  // namespace

HostBuffer::HostBuffer(std::size_t bytes) : Buffer(bytes), data_(allocate(bytes)) {}
HostBuffer::~HostBuffer() { std::free(data_); }

}  // namespace troupe::engine::ops
