#include "engine/checkpoint/running_checksum.h"

#include <xxhash.h>

#include "engine/base/errors/check.h"

namespace troupe::engine::checkpoint {

void RunningChecksum::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

RunningChecksum::RunningChecksum() : state_(XXH3_createState()) {
  check(state_ && XXH3_128bits_reset(state_.get()) == XXH_OK, "XXH3: no state");
}
RunningChecksum::RunningChecksum(RunningChecksum&&) noexcept = default;
RunningChecksum& RunningChecksum::operator=(RunningChecksum&&) noexcept = default;
RunningChecksum::~RunningChecksum() = default;

void RunningChecksum::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
  bytes_ += bytes.size();
}

std::string RunningChecksum::xxh3_128() const {
  constexpr std::string_view digits = "0123456789abcdef";
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
  std::string out;
  for (const unsigned char byte : canonical.digest) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

}  // namespace troupe::engine::checkpoint
