#include "transports/mpi/ring.h"

#include <algorithm>
#include <cstring>

namespace troupe::transports::mpi {

std::size_t Ring::write(std::span<const std::byte> bytes) {
  const std::uint64_t end = own(written());
  const std::size_t n = std::min(bytes.size(), room()), at = end % buffer_.size(),
                    first = std::min(n, buffer_.size() - at);
  if (n == 0) return 0;
  std::memcpy(buffer_.data() + at, bytes.data(), first);
  if (n > first) std::memcpy(buffer_.data(), bytes.data() + first, n - first);
  written().store(end + n, std::memory_order_release);
  return n;
}

std::size_t Ring::read(std::span<std::byte> bytes) {
  const std::uint64_t begin = own(read());
  const std::size_t n = std::min(bytes.size(), available()), at = begin % buffer_.size(),
                    first = std::min(n, buffer_.size() - at);
  if (n == 0) return 0;
  std::memcpy(bytes.data(), buffer_.data() + at, first);
  if (n > first) std::memcpy(bytes.data() + first, buffer_.data(), n - first);
  read().store(begin + n, std::memory_order_release);
  return n;
}

}  // namespace troupe::transports::mpi
