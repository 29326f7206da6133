// Generator: continuous batching over a Decoder with a paged cache of keys and values (Kwon et al.
// 2023; Yu et al. 2022).
//
// A token, its log-probability and its alternatives depend only on (weights, prompt, params, sample
// id), not on other requests, their order of arrival, chunking, preemption or the size of the
// cache. Log-probabilities have the bits that nn::Head computes for the trainer. With tensor
// parallelism and pipeline stages every rank has a generator, with a cache for its heads and
// layers; all get the same calls (requests, callbacks that cancel, weight updates) and return the
// same results. Stages change no bit.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/generate/sampling_params.h"
#include "engine/generate/weight_change.h"
#include "engine/models/packed_weights.h"

namespace troupe::engine::constraints {
class Constraint;
class TokenMask;
}  // namespace troupe::engine::constraints
namespace troupe::engine::nn {
class LoraModel;
}

namespace troupe::engine::generate {

/// Decodes generated ids. The text of a prefix must be a prefix of the text, except for an
/// incomplete character.
using TextDecoder = std::function<std::string(std::span<const std::int32_t>)>;

struct Request {
  std::uint64_t id = 0;  ///< chosen by the caller; unique among unfinished requests
  /// Prompt of at least one token. Requests with the same prompt share its pages.
  std::vector<std::int32_t> prompt;
  SamplingParams params;
  std::uint64_t sample_id = 0;  ///< random stream: samples of one prompt have different ones
  TextDecoder decode;           ///< instead of GeneratorConfig::decode, where the prompt matters
  /// The outputs that are allowed; nullptr: all. Of one generator only (constraint.h).
  std::shared_ptr<constraints::Constraint> constraint;
  /// The tokens that may be sampled, end tokens included; nullptr: all.
  std::shared_ptr<const constraints::TokenMask> allowed = nullptr;
  /// The first token of a constrained output begins with no space, which decoding would drop.
  bool begins_without_space = false;
  /// Of a decoder that has no adapter of its own; nullptr: none. Rows of all adapters are computed
  /// in one pass. The draft model drafts without it.
  std::shared_ptr<const nn::LoraModel> adapter;
  /// Requests with different salts share no keys and values.
  std::string cache_salt;
  /// Scores the tokens of the prompt for GeneratorConfig::on_prompt, with this many alternatives
  /// each; -1: does not. Without scored_from the whole prompt is then computed, and its pages are
  /// not shared.
  int prompt_alternatives = -1;
  /// The first token of the prompt that is scored, at least 1. The pages of those before it are
  /// shared, up to the token before it; with 0 every token is scored and no page is shared.
  std::int32_t scored_from = 0;
  bool generates = true;  ///< false: ends after the prompt; max_new_tokens is then not used
  /// The alternatives of each generated token are these tokens, in this order, instead of the
  /// params.top_logprobs most likely ones; empty: the latter.
  std::vector<std::int32_t> reported = {};

  bool scores_prompt() const { return prompt_alternatives >= 0; }
  bool has_alternatives() const { return params.top_logprobs > 0 || !reported.empty(); }
};

/// A candidate token and its log-probability at temperature 1.
struct Alternative {
  std::int32_t id = 0;
  float logp = 0;
};

struct Generation {
  std::uint64_t id = 0, sample_id = 0;
  std::int32_t prompt_tokens = 0;
  std::int32_t cached_tokens = 0;  ///< of the prompt, whose keys and values the prefix cache had
  std::vector<std::int32_t> ids;   ///< [M] generated tokens, including an end token
  std::vector<float> logp;         ///< [M] log softmax(z)[id], at temperature 1
  /// [M] log softmax(z * ops::inverse_temperature)[id], before filters and penalties, over the
  /// tokens that `masks` keep; for importance ratios.
  std::vector<float> sampling_logp;
  IdSets masks;  ///< [M] the tokens that each was sampled from, with params.report_masks
  std::vector<std::vector<Alternative>> top;  ///< [M] or empty; most likely first, ties by id
  std::vector<std::uint64_t> versions;        ///< [M] version of the weights for each token
  /// Changes of the weights between two of its tokens, and those of them that discarded the tokens.
  std::uint32_t interruptions = 0, restarts = 0;
  FinishReason finish = FinishReason::length;
  std::string stop_string;  ///< the stop string that ended it, or empty
  /// Beam search only: sum of log-probabilities after penalties / length^length_penalty.
  double score = 0;
  std::string text;  ///< decoded ids up to the stop string, where there is a TextDecoder
};

/// Event of a sampled token. The callback may call cancel().
struct TokenEvent {
  std::uint64_t id = 0;    ///< of the request
  std::int32_t index = 0;  ///< 0 for the first generated token
  std::int32_t token = 0;
  float logp = 0, sampling_logp = 0;  ///< as in Generation
  std::span<const Alternative> top;   ///< as in Generation; valid during the callback
  std::string_view mask;              ///< as an element of Generation::masks
  std::uint64_t version = 0;          ///< of the weights
  bool last = false;                  ///< the output ends with this token
};
using TokenCallback = std::function<void(const TokenEvent&)>;

/// Scores of the tokens of a prompt: OpenAI's `echo` with `logprobs`, vLLM's `prompt_logprobs`.
/// Entry t belongs to token t given the tokens before it; the first entry, and those before
/// Request::scored_from, are 0 and without alternatives.
struct PromptScores {
  std::vector<float> logp;                    ///< [T] at temperature 1
  std::vector<std::vector<Alternative>> top;  ///< [T], empty without alternatives
  /// [T] 1 for the most likely token of its place; among equals the smaller id comes first. 0 for
  /// tokens that are not scored.
  std::vector<std::int32_t> rank;
};
/// The scores of the prompt of request `id`, before its first token. The callback does not call
/// cancel().
using PromptCallback = std::function<void(std::uint64_t id, const PromptScores&)>;

/// A failure of step() that concerns one request: cancel() it and continue.
class RequestFailure : public Failure {
 public:
  RequestFailure(std::uint64_t id, Error error) : Failure(std::move(error)), id_(id) {}
  std::uint64_t id() const { return id_; }

 private:
  std::uint64_t id_;
};

struct GeneratorConfig {
  int page_size = 16;        ///< tokens per page
  std::int32_t pages = 0;    ///< size of the cache; 0: default_pages() (kv_cache.h)
  std::int64_t longest = 0;  ///< expected maximum sequence length, for default_pages(); 0: unknown
  std::int32_t max_sequences = 64;  ///< sequences running at the same time
  /// Rows per forward pass, at least max_sequences; longer prompts are split. 0: max_sequences +
  /// 512.
  std::int32_t tokens_per_step = 0;
  /// Keeps full pages of finished and running requests until space is needed, for prompts that
  /// begin with the same tokens. Without effect where keys depend on the length of a sequence.
  bool prefix_cache = false;
  ops::Precision precision = ops::Precision::f32;
  /// int8: less memory traffic per step; log-probabilities are then those of the quantized weights
  /// and differ from nn::Head's.
  models::WeightFormat weights = models::WeightFormat::full;
  /// Prompt lookup: at most this many tokens that followed the same tokens before are computed
  /// along with a sequence's last token, and those that equal the tokens sampled anyway need no
  /// step of their own. Changes no bit. 0: none. Without effect where keys depend on the length of
  /// a sequence.
  std::int32_t lookup = 0;
  /// A draft model with the same vocabulary, instead of prompt lookup: its `draft_tokens` next
  /// tokens take the place of the looked-up ones. nullptr: none. Must outlive the generator, which
  /// alone uses it; its weights must not change. In a group every rank has a whole one.
  models::Decoder* draft = nullptr;
  std::int32_t draft_tokens = 4;
  /// Work of one step for the masks of constrained sequences, in the units of
  /// Constraint::allowed(): about 30 ms. A sequence whose mask takes more waits for the next steps,
  /// while the others go on. Changes no bit.
  std::uint64_t constraint_work = 1'000'000;
  /// Of the constraints of all unfinished requests; beyond it the one with the largest ends.
  std::size_t constraint_bytes = std::size_t{384} << 20;
  /// Logits of one step for the scores of prompts: rows x vocabulary, but at least one row. A
  /// prompt that needs more is computed in several steps, while the others go on. Changes no bit.
  std::int64_t scored_logits = 1 << 23;
  std::vector<std::int32_t> eos_ids;  ///< end tokens (config.json, generation_config.json)
  TextDecoder decode;                 ///< required for stop strings
  EncodeText encode;                  ///< required for texts in bad_words
  TokenCallback on_token;
  PromptCallback on_prompt;
  /// Asked before each step of beam_search(): true ends it.
  std::function<bool()> stop;

  static void each_field(auto& self, auto&& field) {
    field("max_sequences", self.max_sequences, Range{1, 1 << 16}, "sequences decoded concurrently");
    field("weights", self.weights,
          "full: sample from the policy's weights; int8: from an 8-bit copy, for less memory and "
          "time; old log-probabilities are then recomputed by the policy, and "
          "sampling/sampling_logp_difference reports the mismatch");
    field(
        "lookup", self.lookup, Range{0, 256},
        "prompt lookup: draft tokens that are computed along with the last token of each sequence "
        "(serving.md#drafts), for texts that repeat themselves; 0: none; never changes results");
  }
};

/// Number of cache pages of a generator with this configuration.
std::int64_t cache_pages(const GeneratorConfig& config, const models::DecoderSpec& spec);

/// Counters of step(), for metrics and tests.
struct GeneratorStats {
  std::int64_t steps = 0, rows = 0, sampled = 0, preemptions = 0, shared_pages = 0,
               copied_pages = 0;
  /// Tokens of prompts, and those of them that were in the prefix cache.
  std::int64_t prefix_queries = 0, prefix_hits = 0;
  /// Draft tokens that were computed, and those that were sampled.
  std::int64_t drafted = 0, accepted = 0;
};

class Generator {
 public:
  /// Allocates the cache. The decoder must outlive the generator. Errc::usage for invalid sizes.
  static Result<Generator> create(models::Decoder& decoder, GeneratorConfig config);
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;
  ~Generator();

  /// Queues a request. Errc::usage, bad_input or full for invalid params (validate()), an empty
  /// prompt or one of max_positions tokens or more, ids outside the vocabulary, an id in use, more
  /// tokens than the cache holds.
  Result<> submit(Request request);
  /// The checks of submit(), except for an id in use. May be called while another thread is in
  /// step().
  Result<> check_request(const Request& request) const;
  /// Runs one forward pass over the scheduled rows and samples a token for each sequence that is
  /// ready. Returns the requests that finished or were cancelled since the last call, in order of
  /// arrival. Throws RequestFailure when a logit is not finite or every token is banned; the state
  /// is kept: cancel() the request and continue. After another exception, such as std::bad_alloc,
  /// can_repeat_step() tells whether the state is kept as well.
  std::vector<Generation> step();
  /// Whether the last step(), which threw, has appended no token: the next one computes the same
  /// again, possibly for fewer requests.
  bool can_repeat_step() const;
  /// Cancels a request; the next step() returns its tokens so far. False when there is no such
  /// unfinished request.
  bool cancel(std::uint64_t id);
  /// Whether no request is unfinished and step() has nothing to return.
  bool idle() const;
  std::int32_t pages() const;
  std::int32_t free_pages() const;
  /// Pages that only the prefix cache keeps: they are neither free nor in use.
  std::int32_t idle_pages() const;

  /// Cancels all requests, whose results are discarded.
  void discard_all();

  /// Must be called after the weights have changed; later tokens have `version`. `change` names
  /// the effect on unfinished requests. No request takes over cached keys and values that older
  /// weights computed for another one.
  void weights_changed(std::uint64_t version, const WeightChange& change = {});
  const GeneratorStats& stats() const;

 private:
  struct Impl;
  explicit Generator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::engine::generate
