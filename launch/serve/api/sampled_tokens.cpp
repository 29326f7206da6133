#include "launch/serve/api/sampled_tokens.h"

#include <array>
#include <bit>
#include <utility>

namespace troupe::launch::serve::api {

SampledTokens::Chain SampledTokens::next(Chain before, std::int32_t token) const {
  const std::array<std::uint64_t, 2> both{before, static_cast<std::uint32_t>(token)};
  return hash_(std::as_bytes(std::span(both)));
}

SampledTokens::Chain SampledTokens::after(std::span<const std::int32_t> tokens) const {
  Chain chain = 0;
  for (const std::int32_t token : tokens) chain = next(chain, token);
  return chain;
}

std::uint64_t SampledTokens::value_of(Chain chain, float logp, std::uint64_t version,
                                      std::string_view mask) const {
  const float value = logp == 0 ? 0.0f : logp;  // -0 is 0
  const std::uint64_t kept = mask.empty() ? 0 : hash_(std::as_bytes(std::span(mask)));
  const std::array<std::uint64_t, 4> all{chain, std::bit_cast<std::uint32_t>(value), version, kept};
  const std::uint64_t hashed = hash_(std::as_bytes(std::span(all)));
  return hashed == 0 ? 1 : hashed;
}

void SampledTokens::add(Chain chain, float logp, std::uint64_t version, std::string_view mask) {
  const std::uint64_t value = value_of(chain, logp, version, mask);
  const std::lock_guard lock(mutex_);
  if (newer_.count >= half_) older_ = std::exchange(newer_, {});
  newer_.add(value);
}

bool SampledTokens::contains(Chain chain, float logp, std::uint64_t version,
                             std::string_view mask) const {
  const std::uint64_t value = value_of(chain, logp, version, mask);
  const std::lock_guard lock(mutex_);
  return newer_.contains(value) || older_.contains(value);
}

void SampledTokens::Set::add(std::uint64_t value) {
  if (2 * (count + 1) > slots.size()) {
    Set larger;
    larger.slots.resize(slots.empty() ? 1024 : 2 * slots.size());
    for (const std::uint64_t each : slots)
      if (each != 0) larger.add(each);
    *this = std::move(larger);
  }
  std::size_t at = value & (slots.size() - 1);
  while (slots[at] != 0) {
    if (slots[at] == value) return;
    at = (at + 1) & (slots.size() - 1);
  }
  slots[at] = value;
  ++count;
}

bool SampledTokens::Set::contains(std::uint64_t value) const {
  if (slots.empty()) return false;
  std::size_t at = value & (slots.size() - 1);
  while (slots[at] != 0 && slots[at] != value) at = (at + 1) & (slots.size() - 1);
  return slots[at] == value;
}

}  // namespace troupe::launch::serve::api
