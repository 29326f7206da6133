// Bounds of what one request may ask for with several fields together, and of what all requests of
// a server hold.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "launch/serve/api/generation_request.h"

namespace troupe::launch::serve::api {

/// Of all sequences of a request together: generated tokens.
inline constexpr std::int64_t max_request_tokens = 1 << 22;
/// Of a request: its sequences times the entries of logit_bias.
inline constexpr std::int64_t max_request_biases = 1 << 18;
/// Of an answer: tokens and log-probabilities of prompts (choices x tokens x (1 + alternatives)),
/// and of prompts and outputs.
inline constexpr std::int64_t max_reported_of_prompts = 1 << 20;
inline constexpr std::int64_t max_reported = 1 << 22;
/// Of an answer: bytes of return_sampling_mask.
inline constexpr std::int64_t max_mask_bytes = 1 << 26;
/// Of a stream with echo and logprobs, whose prompt is one event (ServerLimits::stream_bytes).
inline constexpr std::int64_t max_echoed_in_stream = 1 << 15;
/// Of a pooling request: tokens, and numbers of its answer.
inline constexpr std::int64_t max_pooled_tokens = 1 << 22, max_pooled_values = 1 << 22;

/// Throws ApiFailure (400), which names the fields and the bound.
void check_products(const GenerationRequest& request);

/// Tokens and log-probabilities of the prompts in the whole answer.
std::int64_t reported_of_prompts(const GenerationRequest& request);

/// Memory of a request that waits, its share of a constraint that others have, too, included.
std::size_t bytes_of(const GenerationRequest& request);

/// What the requests of a server hold, which HeldBytes counts. A request that holds no more than
/// `small` is never refused for what others hold.
struct HeldTotal {
  std::shared_ptr<std::atomic<std::size_t>> bytes = std::make_shared<std::atomic<std::size_t>>(0);
  std::size_t limit = 0, small = 0;

  bool exceeds(std::size_t own, std::size_t all) const { return all > limit && own > small; }
};

}  // namespace troupe::launch::serve::api
