// The body of /v1/experience.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/protocol/generate.h"
#include "engine/base/json/json.h"
#include "engine/base/sets/id_sets.h"

namespace troupe::launch::serve::live {

/// A sample as a program sends it.
struct SentSample {
  std::uint64_t sample_id = 0;
  std::string lease;                    ///< of /v1/lease
  std::vector<std::int32_t> tokens;     ///< prompt, outputs of the policy, and what others wrote
  std::vector<std::uint8_t> mask;       ///< [tokens] 1: the policy sampled it
  std::vector<float> logp;              ///< [tokens] 0 where the mask is 0
  std::vector<std::uint64_t> versions;  ///< [tokens] where the mask is 0: as the token before
  /// [tokens] those over which `logp` is normalized, or empty: the whole vocabulary.
  IdSets masks;
  double reward = 0;
  bool truncated = false;
};

/// What a sample may have.
struct SampleLimits {
  std::int64_t vocabulary = 0;
  std::int64_t longest = 0;     ///< tokens
  std::uint64_t newest = 0;     ///< version of the weights that are in use
  std::int64_t mask_bytes = 0;  ///< of its sampling masks together; 0: it may have none
  bool masks_required = false;
};

/// Throws ApiFailure: status 400 with the name of the field.
SentSample read_sent_sample(const Json& body, const SampleLimits& limits);

/// The tokens after `prompt`. Throws ApiFailure unless the sample begins with the prompt, of which
/// no token is marked, and has a token that the policy sampled.
actors::protocol::Completion completion_of(const SentSample& sent,
                                           const std::vector<std::int32_t>& prompt);

}  // namespace troupe::launch::serve::live
