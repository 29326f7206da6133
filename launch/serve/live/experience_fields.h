// The body of /v1/experience.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/protocol/generate.h"
#include "engine/base/json/json.h"

namespace troupe::launch::serve::live {

/// A sample as a program sends it.
struct SentSample {
  std::uint64_t sample_id = 0;
  std::string lease;                    ///< of /v1/lease
  std::vector<std::int32_t> tokens;     ///< prompt, outputs of the policy, and what others wrote
  std::vector<std::uint8_t> mask;       ///< [tokens] 1: the policy sampled it
  std::vector<float> logp;              ///< [tokens] 0 where the mask is 0
  std::vector<std::uint64_t> versions;  ///< [tokens] where the mask is 0: as the token before
  double reward = 0;
  bool truncated = false;
};

/// Throws ApiFailure: status 400 with the name of the field. `newest`: version of the weights that
/// are in use.
SentSample read_sent_sample(const Json& body, std::int64_t vocabulary, std::int64_t longest,
                            std::uint64_t newest);

/// The tokens after `prompt`. Throws ApiFailure unless the sample begins with the prompt, of which
/// no token is marked, and has a token that the policy sampled.
actors::protocol::Completion completion_of(const SentSample& sent,
                                           const std::vector<std::int32_t>& prompt);

}  // namespace troupe::launch::serve::live
