// Generator: continuous batching over a Decoder with a paged cache of keys and values (Kwon et al.
// 2023; Yu et al. 2022).
//
// A token, its log-probability and its alternatives depend on (weights, prompt, params, sample id)
// alone: not on the other requests, their order of arrival, chunking, preemption or the size of the
// cache. Log-probabilities are the bits that nn::Head gives the trainer for the same tokens. Over a
// decoder that several ranks share, each has a generator, all get the same calls (requests,
// callbacks that cancel, changes of weights) and give the same answers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/generate/sampling_params.h"
#include "engine/models/decoder.h"

namespace troupe::engine::generate {

struct Request {
  std::uint64_t id = 0;  ///< the caller's name for it; unique among unfinished requests
  std::vector<std::int32_t>
      prompt;  ///< at least one token; requests with the same prompt share its pages
  SamplingParams params;
  std::uint64_t sample_id = 0;  ///< stream of random numbers: n samples of one prompt differ in it
};

/// A token that could have been chosen, and log p of it at temperature 1.
struct Alternative {
  std::int32_t id = 0;
  float logp = 0;
};

struct Generation {
  std::uint64_t id = 0, sample_id = 0;
  std::int32_t prompt_tokens = 0;
  std::vector<std::int32_t> ids;     ///< [M] generated tokens, an end token included
  std::vector<float> logp;           ///< [M] log softmax(z)[id]: what the model thinks of it
  std::vector<float> sampling_logp;  ///< [M] log softmax(z * ops::inverse_temperature)[id], before
                                     ///< filters and penalties: what trainers compare with
  std::vector<std::vector<Alternative>> top;  ///< [M] or empty; most likely first, ties by id
  std::vector<std::uint64_t> versions;        ///< [M] weights that made each token
  FinishReason finish = FinishReason::length;
  std::string stop_string;  ///< the one that ended it, if one did
  double score =
      0;  ///< of a beam search: the sum of penalised log-probabilities over length^length_penalty
  std::string
      text;  ///< when there is a TextDecoder: decoded ids, without what follows a stop string
};

/// Text of generated ids. Must treat ids one after the other: text of a prefix is a prefix of the
/// text, but for a character cut short.
using TextDecoder = std::function<std::string(std::span<const std::int32_t>)>;

/// Called for each token the moment it is chosen. May call cancel().
struct TokenEvent {
  std::uint64_t id = 0;    ///< of the request
  std::int32_t index = 0;  ///< 0 for the first generated token
  std::int32_t token = 0;
  float logp = 0;
};
using TokenCallback = std::function<void(const TokenEvent&)>;

struct GeneratorConfig {
  int page_size = 16;                ///< tokens a page
  std::int32_t pages = 0;            ///< size of the cache; 0: default_pages() (cache_size.h)
  std::int64_t longest = 0;          ///< of prompt and output, for that; 0: it is not known
  std::int32_t max_sequences = 64;   ///< sequences that run at the same time
  std::int32_t tokens_per_step = 0;  ///< rows of one forward pass, at least max_sequences; 0:
                                     ///< max_sequences + 512. Longer prompts are cut in chunks
  ops::Precision precision = ops::Precision::f32;
  /// int8: less memory and time a step; log-probabilities are then those of the weights in 8 bits,
  /// and nn::Head gives others.
  models::WeightsRead weights = models::WeightsRead::as_they_are;
  std::vector<std::int32_t>
      eos_ids;         ///< the model's end tokens (config.json, generation_config.json)
  TextDecoder decode;  ///< needed for stop strings only
  TokenCallback on_token;
};

/// Of the cache that a generator of this model has with it, `pages` or the default.
std::int64_t cache_pages(const GeneratorConfig& config, const models::DecoderSpec& spec);

/// What step() did, for metrics and tests.
struct GeneratorStats {
  std::int64_t steps = 0, rows = 0, sampled = 0, preemptions = 0, shared_pages = 0,
               copied_pages = 0;
};

class Generator {
 public:
  /// Allocates the cache. The decoder must outlive the generator. Errc::usage for sizes that cannot
  /// work.
  static Result<Generator> create(models::Decoder& decoder, GeneratorConfig config);
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;
  ~Generator();

  /// Queues a request. Refuses (Errc::usage, bad_input, full) params that validate() refuses, an
  /// empty prompt or one that leaves no room before max_positions, ids outside the vocabulary, a
  /// name in use, more tokens than the whole cache holds.
  Result<> submit(Request request);
  /// One forward pass over what the scheduler chose, and one new token for each sequence that is
  /// ready. Returns what finished since the last call, cancelled ones included, in order of
  /// arrival. Throws Failure when a logit is not finite; nothing is lost then: cancel() the request
  /// that it names, and go on.
  std::vector<Generation> step();
  /// Ends a request with what it has so far; the next step() returns it. False when there is no
  /// such unfinished request.
  bool cancel(std::uint64_t id);
  /// No unfinished request, and nothing that step() has still to return.
  bool idle() const;
  std::size_t unfinished() const;

  /// Submits all and steps until all are done. Results in the order of `requests`. Other requests
  /// must not be pending. When a request is refused, or step() throws, all of them are forgotten.
  Result<std::vector<Generation>> generate_all(std::vector<Request> requests);

  /// Tells that the weights have changed: cached keys and values are dropped and recomputed, later
  /// tokens carry `version`.
  void weights_changed(std::uint64_t version);
  const GeneratorStats& stats() const;

 private:
  struct Impl;
  explicit Generator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::engine::generate
