// SampledTokens: which log-probabilities a server has given out, and for which tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/random/secret.h"

namespace troupe::launch::serve::api {

/// Remembers the newest tokens by keyed hashes of 64 bits: of all tokens before, the token itself,
/// its log-probability, the version of the weights and the encoded set of tokens over which the
/// log-probability is normalized (engine/base/sets; "": the whole vocabulary). Who has not received
/// a token from this server cannot name values that contains() accepts, other than by guessing. 32
/// bytes per token at most. Every function may be called from any thread.
class SampledTokens {
 public:
  /// At least the newest `tokens` tokens are remembered, and at most twice as many.
  explicit SampledTokens(std::size_t tokens = std::size_t{1} << 22) : half_(tokens) {}

  /// A hash of a sequence of tokens; 0: of the empty one.
  using Chain = std::uint64_t;
  Chain next(Chain before, std::int32_t token) const;
  Chain after(std::span<const std::int32_t> tokens) const;

  /// The last token of `chain` was sampled and is given out.
  void add(Chain chain, float logp, std::uint64_t version, std::string_view mask = {});
  bool contains(Chain chain, float logp, std::uint64_t version, std::string_view mask = {}) const;

 private:
  /// A hash set with linear probing.
  struct Set {
    void add(std::uint64_t value);
    bool contains(std::uint64_t value) const;
    std::vector<std::uint64_t> slots;  // 0: free
    std::size_t count = 0;
  };
  std::uint64_t value_of(Chain chain, float logp, std::uint64_t version,
                         std::string_view mask) const;

  const std::size_t half_;
  const KeyedHash hash_;
  mutable std::mutex mutex_;  // of what follows
  Set newer_, older_;
};

}  // namespace troupe::launch::serve::api
