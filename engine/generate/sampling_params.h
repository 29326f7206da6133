// SamplingParams: settings of sampling and beam search. Names, order and meaning are those of
// transformers' generate(); presence and frequency penalties are those of the OpenAI API (over
// generated tokens only).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/base/error.h"

namespace troupe::engine::generate {

/// Reasons why a generation ended: an end token or stop string, the length limit, or the caller.
enum class FinishReason : std::uint8_t { stop, length, cancelled };
constexpr std::array<std::string_view, 3> names_of(FinishReason) {
  return {"stop", "length", "cancelled"};
}
inline std::string to_string(FinishReason reason) {
  return std::string(names_of(reason)[static_cast<std::size_t>(reason)]);
}

/// Bias on the logit of the last of `ids` where the others are the latest tokens of the sequence.
struct SequenceBias {
  std::vector<std::int32_t> ids;
  double bias = 0;
  bool operator==(const SequenceBias&) const = default;
};
inline auto fields(SequenceBias& w) {
  return std::tie(w.ids, w.bias);
}

/// Tokens and token sequences that are biased, banned or forced.
struct TokenRules {
  std::vector<SequenceBias> sequence_bias;
  /// Token sequences that must not occur; single end tokens are not banned.
  std::vector<std::vector<std::int32_t>> bad_words;
  std::vector<std::int32_t> suppress_tokens;  ///< never sampled
  /// Never sampled as the first token of an output.
  std::vector<std::int32_t> begin_suppress_tokens;
  /// forced_bos_token_id: allowed tokens at position 1 of a sequence; empty: any.
  std::vector<std::int32_t> forced_first;
  /// forced_eos_token_id: allowed tokens at the last position of max_new_tokens; empty: any.
  std::vector<std::int32_t> forced_last;
  /// encoder_repetition_penalty: above 1, raises the logits of tokens of the prompt.
  double prompt_repetition_penalty = 1;
  /// encoder_no_repeat_ngram_size: bans n-grams of the prompt; 0: off.
  int prompt_no_repeat_ngram = 0;
  /// exponential_decay_length_penalty: after `decay_start` tokens, adds |logit| (factor^excess - 1)
  /// to the logits of end tokens.
  std::int32_t decay_start = 0;
  double decay_factor = 1;
  bool operator==(const TokenRules&) const = default;
};
inline auto fields(TokenRules& w) {
  return std::tie(w.sequence_bias, w.bad_words, w.suppress_tokens, w.begin_suppress_tokens,
                  w.forced_first, w.forced_last, w.prompt_repetition_penalty,
                  w.prompt_no_repeat_ngram, w.decay_start, w.decay_factor);
}

/// Condition on which a beam search with num_beams ended sequences stops. no: no running beam,
/// ended now, would be better than the worst of them. yes: at once. never: no beam can ever become
/// better.
enum class EarlyStopping : std::uint8_t { no, yes, never };
constexpr std::array<std::string_view, 3> names_of(EarlyStopping) {
  return {"false", "true", "never"};
}

/// Beam search (beam_search.h), where `count` is above 1.
struct Beams {
  int count = 1;  ///< num_beams
  /// The score of an ended sequence is divided by length^length_penalty.
  double length_penalty = 1;
  EarlyStopping early_stopping = EarlyStopping::no;
  /// renormalize_logits: renormalizes log-probabilities after penalties and bans; beam search only.
  bool renormalize = false;
  /// num_return_sequences; without beam search the caller submits that many requests.
  int returned = 1;
  bool operator==(const Beams&) const = default;
};
inline auto fields(Beams& b) {
  return std::tie(b.count, b.length_penalty, b.early_stopping, b.renormalize, b.returned);
}

struct SamplingParams {
  bool greedy = false;     ///< argmax after penalties and bans; ignores temperature and filters
  double temperature = 1;  ///< divides the logits; 0: greedy
  std::int64_t top_k = 0;  ///< keep the k most likely tokens (and ties with the k-th); 0: all
  double top_p = 1;  ///< keep the smallest set with this probability (Holtzman et al. 2020); 1: all
  double min_p = 0;  ///< keep tokens with at least min_p times the largest probability; 0: all
  double typical_p = 1;       ///< locally typical sampling (Meister et al. 2023); 1: all
  double epsilon_cutoff = 0;  ///< drop tokens below this probability (Hewitt et al. 2022); 0: none
  double eta_cutoff = 0;  ///< drop tokens below min(eta, sqrt(eta) exp(-entropy)) (ibid.); 0: none
  /// Keep the most likely of the first 100 tokens up to this fraction of their entropy
  /// (arXiv:2509.02510); 0: all.
  double top_h = 0;
  /// Divides positive and multiplies negative logits of tokens of prompt and output (Keskar et al.
  /// 2019).
  double repetition_penalty = 1;
  double presence_penalty = 0;   ///< subtracted once from the logit of each generated token
  double frequency_penalty = 0;  ///< subtracted once per occurrence of a generated token
  int no_repeat_ngram = 0;  ///< bans repeated n-grams of this size in prompt and output; 0: off
  std::int32_t max_new_tokens = 16;       ///< at least 1
  std::int32_t min_new_tokens = 0;        ///< end and stop tokens are banned before
  std::vector<std::int32_t> stop_tokens;  ///< additional end tokens; part of the output
  /// Strings that end the output; its text ends before them, its ids do not.
  std::vector<std::string> stop_strings;
  bool ignore_eos = false;  ///< the model's end tokens do not end the output
  int top_logprobs = 0;     ///< number of alternatives to report per token
  std::uint64_t seed = 0;   ///< random seed; with sample id and position determines every sample
  TokenRules token_rules;
  Beams beams;

  bool is_greedy() const { return greedy || temperature == 0; }
  bool operator==(const SamplingParams&) const = default;
};
inline auto fields(SamplingParams& p) {
  return std::tie(p.greedy, p.temperature, p.top_k, p.top_p, p.min_p, p.typical_p, p.epsilon_cutoff,
                  p.eta_cutoff, p.top_h, p.repetition_penalty, p.presence_penalty,
                  p.frequency_penalty, p.no_repeat_ngram, p.max_new_tokens, p.min_new_tokens,
                  p.stop_tokens, p.stop_strings, p.ignore_eos, p.top_logprobs, p.seed,
                  p.token_rules, p.beams);
}

/// Bounds of what one prompt may ask for: outputs, and tokens of all its outputs together.
inline constexpr int max_return_sequences = 4096;
inline constexpr std::int64_t max_returned_tokens = 1 << 26;

/// Errc::usage for invalid values, naming the setting, its value and the allowed values.
/// `vocabulary` limits token ids.
Result<> validate(const SamplingParams& params, std::int64_t vocabulary);

}  // namespace troupe::engine::generate
