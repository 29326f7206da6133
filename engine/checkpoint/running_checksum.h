// RunningChecksum: XXH3-128 of bytes that come in parts, such as the lines of a growing file. The
// checksum so far costs no second reading of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace troupe::engine::checkpoint {

class RunningChecksum {
 public:
  RunningChecksum();
  RunningChecksum(RunningChecksum&&) noexcept;
  RunningChecksum& operator=(RunningChecksum&&) noexcept;
  ~RunningChecksum();

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  /// Bytes so far.
  std::uint64_t bytes() const { return bytes_; }
  /// Of the bytes so far: 32 hexadecimal digits, canonical (big-endian), as xxhsum prints it.
  std::string xxh3_128() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
  std::uint64_t bytes_ = 0;
};

}  // namespace troupe::engine::checkpoint
