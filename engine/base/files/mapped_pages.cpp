#include "engine/base/files/mapped_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace troupe {

void release_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t over = reinterpret_cast<std::uintptr_t>(bytes.data()) % page,
                    first = over == 0 ? 0 : page - over;
  if (bytes.size() < first + page) return;
  const auto whole = bytes.subspan(first, (bytes.size() - first) / page * page);
  // Advice only: where it fails the pages stay.
  ::madvise(const_cast<std::byte*>(whole.data()), whole.size(), MADV_DONTNEED);
}

}  // namespace troupe
