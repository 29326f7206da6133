// SamplingParams: how the next token is chosen. Names, order and meaning of the settings are those
// of transformers' generate(); presence and frequency penalties are those of the OpenAI API (over
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

/// `bias` is added to the logit of the last of `ids` where the ones before it end the text so far.
struct WordBias {
  std::vector<std::int32_t> ids;
  double bias = 0;
  bool operator==(const WordBias&) const = default;
};
inline auto fields(WordBias& w) {
  return std::tie(w.ids, w.bias);
}

/// Tokens and words that are made likelier, banned or forced.
struct WordRules {
  std::vector<WordBias> sequence_bias;
  std::vector<std::vector<std::int32_t>> bad_words;  ///< never the last of them behind the others;
                                                     ///< end tokens by themselves are left alone
  std::vector<std::int32_t> suppress_tokens;         ///< never
  std::vector<std::int32_t> begin_suppress_tokens;   ///< not as the first token of an output
  std::vector<std::int32_t> forced_first;  ///< forced_bos_token_id: the second token of a sequence
                                           ///< is one of these; empty: any
  std::vector<std::int32_t>
      forced_last;  ///< forced_eos_token_id: the last token that max_new_tokens has room for
  double prompt_repetition_penalty =
      1;  ///< encoder_repetition_penalty: above 1, tokens of the prompt become likelier
  int prompt_no_repeat_ngram =
      0;  ///< encoder_no_repeat_ngram_size: no n-gram of the prompt stands again; 0: off
  std::int32_t decay_start =
      0;  ///< exponential_decay_length_penalty: after so many tokens end tokens become likelier,
  double decay_factor = 1;  ///< by |logit| (factor^tokens beyond - 1)
  bool operator==(const WordRules&) const = default;
};
inline auto fields(WordRules& w) {
  return std::tie(w.sequence_bias, w.bad_words, w.suppress_tokens, w.begin_suppress_tokens,
                  w.forced_first, w.forced_last, w.prompt_repetition_penalty,
                  w.prompt_no_repeat_ngram, w.decay_start, w.decay_factor);
}

/// When a beam search with all its sequences ended goes no further: once no running beam, ended
/// now, would be better than the worst of them (no); at once (yes); once none could ever be
/// (never).
enum class EarlyStopping : std::uint8_t { no, yes, never };
constexpr std::array<std::string_view, 3> names_of(EarlyStopping) {
  return {"false", "true", "never"};
}

/// Beam search (beam_search.h), where `count` is above 1.
struct Beams {
  int count = 1;  ///< num_beams
  double length_penalty =
      1;  ///< an ended sequence's sum of log-probabilities is divided by its length to this power
  EarlyStopping early_stopping = EarlyStopping::no;
  bool renormalize = false;  ///< renormalize_logits: penalties and bans leave log-probabilities
                             ///< again; no matter without beams
  int returned =
      1;  ///< num_return_sequences; without beams so many requests are the caller's to make
  bool operator==(const Beams&) const = default;
};
inline auto fields(Beams& b) {
  return std::tie(b.count, b.length_penalty, b.early_stopping, b.renormalize, b.returned);
}

struct SamplingParams {
  bool greedy = false;  ///< the most likely token after penalties and bans; filters and temperature
                        ///< play no part
  double temperature = 1;  ///< logits are divided by it; 0 means greedy
  std::int64_t top_k = 0;  ///< keep the k most likely (ties with the k-th too); 0: all
  double top_p =
      1;  ///< keep the smallest set with at least this mass (Holtzman et al. 2020); 1: all
  double min_p = 0;      ///< keep tokens with at least min_p times the largest probability; 0: all
  double typical_p = 1;  ///< locally typical sampling (Meister et al. 2023); 1: all
  double epsilon_cutoff = 0;  ///< drop tokens below this probability (Hewitt et al. 2022); 0: none
  double eta_cutoff = 0;      ///< the same with min(eta, sqrt(eta) exp(-entropy)) (there); 0: none
  double top_h = 0;  ///< keep the likeliest of the first 100 up to this share of their entropy
                     ///< (arXiv:2509.02510); 0: all
  double repetition_penalty = 1;  ///< positive logits of tokens seen (prompt and output) divided,
                                  ///< negative multiplied (Keskar et al. 2019)
  double presence_penalty = 0;    ///< taken once from the logit of each token already generated
  double frequency_penalty = 0;   ///< taken as often as the token was generated
  int no_repeat_ngram = 0;        ///< no n-gram of prompt and output stands twice; 0: off
  std::int32_t max_new_tokens = 16;       ///< at least 1
  std::int32_t min_new_tokens = 0;        ///< end and stop tokens are banned until then
  std::vector<std::int32_t> stop_tokens;  ///< these end the output, beside the model's own end
                                          ///< tokens; the stop token is part of the output
  std::vector<std::string>
      stop_strings;         ///< these end the output; its text is cut before them, its ids are not
  bool ignore_eos = false;  ///< the model's end tokens do not end the output
  int top_logprobs = 0;     ///< alternatives to report with each token
  std::uint64_t seed = 0;   ///< with the request's sample id and the position it decides every draw
  WordRules words;
  Beams beams;

  bool is_greedy() const { return greedy || temperature == 0; }
  bool operator==(const SamplingParams&) const = default;
};
inline auto fields(SamplingParams& p) {
  return std::tie(p.greedy, p.temperature, p.top_k, p.top_p, p.min_p, p.typical_p, p.epsilon_cutoff,
                  p.eta_cutoff, p.top_h, p.repetition_penalty, p.presence_penalty,
                  p.frequency_penalty, p.no_repeat_ngram, p.max_new_tokens, p.min_new_tokens,
                  p.stop_tokens, p.stop_strings, p.ignore_eos, p.top_logprobs, p.seed, p.words,
                  p.beams);
}

/// Refuses values that mean nothing, naming the setting, the value found and the values allowed.
/// `vocabulary` bounds token ids. Errc::usage.
Result<> validate(const SamplingParams& params, std::int64_t vocabulary);

}  // namespace troupe::engine::generate
