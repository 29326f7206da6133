// HeldBytes: what the body of one request counts in the total of its server, until nobody holds it.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace troupe::launch::serve::http {

class HeldBytes {
 public:
  explicit HeldBytes(std::shared_ptr<std::atomic<std::size_t>> total) : total_(std::move(total)) {}
  ~HeldBytes() { grow_to(0); }
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

  /// The total with this body at its present size.
  std::size_t grow_to(std::size_t bytes) {
    const std::size_t before = std::exchange(bytes_, bytes);
    return *total_ += bytes - before;  // modulo 2^64
  }

 private:
  const std::shared_ptr<std::atomic<std::size_t>> total_;
  std::size_t bytes_ = 0;
};

}  // namespace troupe::launch::serve::http
