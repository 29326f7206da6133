#include "launch/serve/api/request_bounds.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "engine/constraints/constraint.h"
#include "engine/constraints/token_table.h"
#include "launch/serve/api/failure.h"

namespace troupe::launch::serve::api {

namespace {

/// Entries of a choice of this prompt for each token of the prompt.
std::int64_t entries_per_prompt_token(const GenerationRequest& request) {
  std::int64_t entries = 0;
  if (request.echo) entries += request.logprobs ? 1 + request.params.top_logprobs : 1;
  if (request.prompt_logprobs >= 0) entries += 1 + request.prompt_logprobs;
  if (request.return_token_ids) ++entries;
  return entries;
}

/// The fields that repeat a prompt in the answer.
std::string prompt_fields(const GenerationRequest& request) {
  std::string names = cat("n (", request.choices, ")");
  if (request.echo) names += ", echo";
  if (request.echo && request.logprobs)
    names += cat(", logprobs (", request.params.top_logprobs, ")");
  if (request.prompt_logprobs >= 0)
    names += cat(", prompt_logprobs (", request.prompt_logprobs, ")");
  if (request.return_token_ids) names += ", return_token_ids";
  return names;
}

std::int64_t generated_tokens(const GenerationRequest& request, std::int64_t sequences) {
  std::int64_t tokens = 0;
  for (const std::int32_t each : request.max_tokens) tokens += each * sequences;
  return tokens;
}

}  // namespace

std::int64_t reported_of_prompts(const GenerationRequest& request) {
  std::int64_t tokens = 0;
  for (const auto& prompt : request.prompts) tokens += std::ssize(prompt);
  // The answer of a conversation has what belongs to the prompt once.
  const std::int64_t times = request.endpoint == Endpoint::chat ? 1 : request.choices;
  return tokens * times * entries_per_prompt_token(request);
}

void check_products(const GenerationRequest& request) {
  const std::int64_t sequences = std::ssize(request.prompts) * request.best_of;
  const auto& rules = request.params.token_rules;
  const std::int64_t biases = std::ssize(rules.sequence_bias) + std::ssize(rules.bad_words);
  if (sequences * biases > max_request_biases)
    refuse("logit_bias",
           cat("logit_bias and bad_words have ", biases, " entries, and the request ", sequences,
               " sequences (prompts x n or best_of); allowed: a product of ", max_request_biases));
  const std::int64_t tokens = generated_tokens(request, request.best_of);
  if (tokens > max_request_tokens)
    refuse("max_tokens",
           cat("max_tokens with ", sequences, " sequences (prompts x n or best_of) makes ", tokens,
               " tokens; allowed: ", max_request_tokens, "; lower max_tokens or n"));
  const std::int64_t of_prompts = reported_of_prompts(request);
  if (of_prompts > max_reported_of_prompts)
    refuse("n", cat("the answer would have ", of_prompts,
                    " tokens and log-probabilities of the prompts: prompt tokens x ",
                    prompt_fields(request), "; allowed: ", max_reported_of_prompts));
  if (request.stream && request.echo && request.logprobs && of_prompts > max_echoed_in_stream)
    refuse("echo", cat("a stream would have ", of_prompts,
                       " log-probabilities of the prompts: ", "prompt tokens x ",
                       prompt_fields(request), "; allowed: ", max_echoed_in_stream));
  if (tokens * request.mask_bytes > max_mask_bytes)
    refuse("return_sampling_mask",
           cat("the sampling masks of the answer could have ", tokens * request.mask_bytes,
               " bytes: max_tokens x sequences (", sequences, ") x ", request.mask_bytes,
               "; allowed: ", max_mask_bytes, "; lower max_tokens or n, or set top_k"));
  if (!request.logprobs) return;
  const std::int64_t all =
      of_prompts + generated_tokens(request, request.choices) * (1 + request.alternatives());
  if (all > max_reported)
    refuse("logprobs",
           cat("the answer could have ", all, " log-probabilities: max_tokens x ", "prompts x n (",
               request.choices, ") x alternatives (", request.alternatives(),
               "); allowed: ", max_reported, "; lower max_tokens, n or logprobs"));
}

std::size_t bytes_of(const GenerationRequest& request) {
  constexpr std::size_t bytes_per_bias = sizeof(engine::generate::SequenceBias) + 32;
  constexpr std::size_t bytes_per_sequence = 2048;
  std::size_t bytes =
      request.prompts.size() * static_cast<std::size_t>(request.best_of) * bytes_per_sequence;
  for (const auto& prompt : request.prompts) bytes += prompt.size() * sizeof(std::int32_t);
  bytes += request.reported.size() * sizeof(std::int32_t);
  for (const auto& text : request.prompt_texts) bytes += text.size();
  for (const auto& stop : request.params.stop_strings) bytes += stop.size();
  bytes += request.params.token_rules.sequence_bias.size() * bytes_per_bias;
  for (const auto& word : request.params.token_rules.bad_words)
    bytes += bytes_per_bias + word.ids.size() * sizeof(std::int32_t);
  if (request.allowed) bytes += request.allowed->bytes();
  if (request.constraint.source) bytes += request.constraint.source->size();
  if (const auto& constraint = request.constraint.compiled) {
    const long others = std::max(1L, constraint.use_count() - 1);
    bytes += constraint->bytes() / static_cast<std::size_t>(others);
  }
  return bytes;
}

}  // namespace troupe::launch::serve::api
