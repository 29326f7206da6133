// SamplingParams: settings of sampling and beam search. Names, order and meaning are those of
// transformers' generate(); presence and frequency penalties are those of the OpenAI API (over
// generated tokens only).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/fields.h"

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

/// A text or a token sequence that must not occur.
struct BadWord {
  std::string text;               ///< "" where there are ids (resolve_bad_words)
  std::vector<std::int32_t> ids;  ///< a single end token is not banned
  bool operator==(const BadWord&) const = default;
};
inline auto fields(BadWord& w) {
  return std::tie(w.text, w.ids);
}

/// Tokens and token sequences that are biased, banned or forced.
struct TokenRules {
  std::vector<SequenceBias> sequence_bias;
  std::vector<BadWord> bad_words;
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

/// A parameter that users set has its name, range and description in each_field() and nowhere else:
/// `rollout.*`, the options of `generate` and `chat`, JSON lines, generation_config.json and
/// requests of the server are made of this list.
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
  /// Reports the tokens that each token was sampled from (Generation::masks); sampling_logp is then
  /// over these.
  bool report_masks = false;
  std::uint64_t seed = 0;  ///< random seed; with sample id and position determines every sample
  TokenRules token_rules;
  Beams beams;

  /// These filters and penalties, with the lengths and ends of a default.
  SamplingParams distribution() const;
  bool is_greedy() const { return greedy || temperature == 0; }
  bool operator==(const SamplingParams&) const = default;

  /// True for a field that changes the distribution of samples in another way than the temperature.
  static bool changes_distribution(std::string_view name);
  /// Whether bans, lengths or filters leave fewer tokens than the vocabulary at some position; a
  /// constraint of the request is not known here.
  bool removes_tokens() const;
  /// Whether penalties or biases change the logits of tokens that are left.
  bool changes_logits() const;
  /// The maximum bytes of the encoded set of tokens that are left at a position; 0: never fewer
  /// than the vocabulary.
  std::int64_t max_mask_bytes(std::int64_t vocabulary) const;

  /// Without effect on greedy outputs.
  static void each_filter(auto& self, auto&& field) {
    field("temperature", self.temperature, Range{.low = 1e-3, .high = 1e3, .or_zero = true},
          "divides the logits; 1: the model's own distribution; 0: the most likely token");
    field("top_k", self.top_k, Range{0, 1e12}, "sample from the k most likely tokens; 0: all");
    field("top_p", self.top_p, above_0_to_1,
          "sample from the most likely tokens up to this total probability; 1: all");
    field("min_p", self.min_p, from_0_to_1,
          "sample from tokens with at least this fraction of the highest probability; 0: all");
    field("typical_p", self.typical_p, above_0_to_1,
          "locally typical sampling: mass of the tokens whose information is nearest to the "
          "entropy; 1: all");
    field("epsilon_cutoff", self.epsilon_cutoff, from_0_below_1,
          "sample from tokens with at least this probability; 0: all");
    field("eta_cutoff", self.eta_cutoff, from_0_below_1,
          "eta sampling: a cutoff of the probability that is lower where the entropy is high; 0: "
          "none");
    field("top_h", self.top_h, from_0_to_1,
          "sample from the most likely tokens up to this fraction of their entropy; 0: all");
  }
  static void each_penalty(auto& self, auto&& field) {
    field("repetition_penalty", self.repetition_penalty, Range{1e-3, 1e3},
          "above 1: lowers the logits of tokens already in the prompt or the output; 1: none");
    field("presence_penalty", self.presence_penalty, Range{-1e3, 1e3},
          "subtracted from the logits of tokens already generated");
    field("frequency_penalty", self.frequency_penalty, Range{-1e3, 1e3},
          "subtracted from the logit of a token once for each time it was generated");
    field("no_repeat_ngram_size", self.no_repeat_ngram, Range{0, 1 << 20},
          "never repeat an n-gram of this size; 0: off");
    field("suppress_tokens", self.token_rules.suppress_tokens, "ids that are never sampled");
    field("bad_words", self.token_rules.bad_words,
          "texts, or lists of token ids, that are not written");
    field(
        "sequence_bias", self.token_rules.sequence_bias,
        "pairs of ids and a bias, which is added to the logit of the last id where the others are "
        "the latest tokens");
  }
  static void each_limit(auto& self, auto&& field) {
    field("max_new_tokens", self.max_new_tokens, Range{1, 1 << 24}, "maximum tokens of an output");
    field("min_new_tokens", self.min_new_tokens, Range{0, 1 << 24},
          "tokens before which end and stop tokens are not sampled and stop strings do not end");
    field("stop", self.stop_strings, "texts that end the output, which ends before them");
    field("ignore_eos", self.ignore_eos, "the model's end tokens do not end the output");
  }
  static void each_field(auto& self, auto&& field) {
    each_filter(self, field);
    each_penalty(self, field);
    each_limit(self, field);
  }
};
inline auto fields(SamplingParams& p) {
  return std::tie(p.greedy, p.temperature, p.top_k, p.top_p, p.min_p, p.typical_p, p.epsilon_cutoff,
                  p.eta_cutoff, p.top_h, p.repetition_penalty, p.presence_penalty,
                  p.frequency_penalty, p.no_repeat_ngram, p.max_new_tokens, p.min_new_tokens,
                  p.stop_tokens, p.stop_strings, p.ignore_eos, p.top_logprobs, p.report_masks,
                  p.seed, p.token_rules, p.beams);
}

/// Bounds of what one prompt may ask for: outputs, and tokens of all its outputs together.
inline constexpr int max_return_sequences = 4096;
inline constexpr std::int64_t max_returned_tokens = 1 << 26;

/// Tokens of a text, without special tokens.
using EncodeText = std::function<Result<std::vector<std::int32_t>>(std::string_view text)>;

/// Replaces the texts of bad_words by ids. A word has other tokens within a text than at its
/// beginning, so it stands for both. Errors of `encode`; Errc::usage for an empty text, and for any
/// text where `encode` is empty.
Result<> resolve_bad_words(SamplingParams& params, const EncodeText& encode);

/// Errc::usage for invalid values, naming the setting, its value and the allowed values.
/// `vocabulary` limits token ids.
Result<> validate(const SamplingParams& params, std::int64_t vocabulary);

}  // namespace troupe::engine::generate
