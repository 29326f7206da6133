// SamplingParams: how the next token is chosen. Names, order and meaning of the settings are those of transformers' generate();
// presence and frequency penalties are those of the OpenAI API (over generated tokens only).
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "engine/base/error.h"

namespace troupe::engine::generate {

struct SamplingParams {
  bool greedy = false;            ///< the most likely token after penalties and bans; filters and temperature play no part
  double temperature = 1;         ///< logits are divided by it; 0 means greedy
  std::int64_t top_k = 0;         ///< keep the k most likely (ties with the k-th too); 0: all
  double top_p = 1;               ///< keep the smallest set with at least this mass (Holtzman et al. 2020); 1: all
  double min_p = 0;               ///< keep tokens with at least min_p times the largest probability; 0: all
  double typical_p = 1;           ///< locally typical sampling (Meister et al. 2023); 1: all
  double epsilon_cutoff = 0;      ///< drop tokens below this probability (Hewitt et al. 2022); 0: none
  double repetition_penalty = 1;  ///< positive logits of tokens seen (prompt and output) divided, negative multiplied (Keskar et al. 2019)
  double presence_penalty = 0;    ///< taken once from the logit of each token already generated
  double frequency_penalty = 0;   ///< taken as often as the token was generated
  int no_repeat_ngram = 0;        ///< no n-gram of prompt and output stands twice; 0: off
  std::int32_t max_new_tokens = 16;       ///< at least 1
  std::int32_t min_new_tokens = 0;        ///< end and stop tokens are banned until then
  std::vector<std::int32_t> stop_tokens;  ///< these end the output, beside the model's own end tokens; the stop token is part of the output
  std::vector<std::string> stop_strings;  ///< these end the output; its text is cut before them, its ids are not
  bool ignore_eos = false;                ///< the model's end tokens do not end the output
  int top_logprobs = 0;                   ///< alternatives to report with each token
  std::uint64_t seed = 0;                 ///< with the request's sample id and the position it decides every draw

  bool is_greedy() const { return greedy || temperature == 0; }
};
inline auto fields(SamplingParams& p) {
  return std::tie(p.greedy, p.temperature, p.top_k, p.top_p, p.min_p, p.typical_p, p.epsilon_cutoff, p.repetition_penalty,
                  p.presence_penalty, p.frequency_penalty, p.no_repeat_ngram, p.max_new_tokens, p.min_new_tokens, p.stop_tokens,
                  p.stop_strings, p.ignore_eos, p.top_logprobs, p.seed);
}

/// Refuses values that mean nothing, naming the setting, the value found and the values allowed. `vocabulary` bounds token ids.
/// Errc::usage.
Result<> validate(const SamplingParams& params, std::int64_t vocabulary);

}  // namespace troupe::engine::generate
