// Little-endian integers at any address of a file.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>

namespace troupe::engine::checkpoint {

static_assert(std::endian::native == std::endian::little);

/// The integer at `at`; the caller has checked that its bytes are there.
template <class Integer>
Integer load_integer(std::span<const std::byte> bytes, std::size_t at) {
  Integer out;
  std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}

template <class Integer>
void append_integer(std::string& out, Integer value) {
  const auto at = out.size();
  out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}

}  // namespace troupe::engine::checkpoint
