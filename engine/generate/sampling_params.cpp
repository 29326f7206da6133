#include "engine/generate/sampling_params.h"

#include <cmath>
#include <span>
#include <utility>

#include "engine/base/text.h"
#include "engine/generate/sampling_bounds.h"

namespace troupe::engine::generate {

namespace {

constexpr std::size_t max_token_list_length = 1024;
constexpr std::size_t max_ids = 1 << 20;  // more than any vocabulary has
constexpr int max_logprobs = 1000, max_beams = 64;

/// A setting, its value, whether it is valid, and a description of the valid values.
struct Rule {
  const char* name;
  double value;
  bool ok;
  const char* allowed;
};

Result<> all_of(std::span<const Rule> rules) {
  for (const Rule& rule : rules) {
    if (!rule.ok)
      return fail(Errc::usage, cat(rule.name, " is ", rule.value, "; allowed: ", rule.allowed));
  }
  return {};
}

Result<> validate_numbers(const SamplingParams& p) {
  const auto within = [](double x, double low, double high) {
    return x >= low && x <= high;
  };  // false for nan
  const Rule rules[] = {
      {"temperature", p.temperature, p.temperature == 0 || within(p.temperature, 1e-3, 1e3),
       "0 (greedy), or 0.001 to 1000"},
      {"top_k", static_cast<double>(p.top_k), p.top_k >= 0, "0 (all tokens) or more"},
      {"top_p", p.top_p, p.top_p > 0 && p.top_p <= 1, "above 0, at most 1 (all tokens)"},
      {"min_p", p.min_p, within(p.min_p, 0, 1), "0 (all tokens) to 1"},
      {"typical_p", p.typical_p, p.typical_p > 0 && p.typical_p <= 1,
       "above 0, at most 1 (all tokens)"},
      {"epsilon_cutoff", p.epsilon_cutoff, p.epsilon_cutoff >= 0 && p.epsilon_cutoff < 1,
       "0 (all tokens) or more, below 1"},
      {"eta_cutoff", p.eta_cutoff, p.eta_cutoff >= 0 && p.eta_cutoff < 1,
       "0 (all tokens) or more, below 1"},
      {"top_h", p.top_h, within(p.top_h, 0, 1), "0 (all tokens) to 1"},
      {"repetition_penalty", p.repetition_penalty, within(p.repetition_penalty, 1e-3, 1e3),
       "0.001 to 1000, 1 for none"},
      {"presence_penalty", p.presence_penalty, within(p.presence_penalty, -1e3, 1e3),
       "-1000 to 1000, 0 for none"},
      {"frequency_penalty", p.frequency_penalty, within(p.frequency_penalty, -1e3, 1e3),
       "-1000 to 1000, 0 for none"},
      {"no_repeat_ngram_size", static_cast<double>(p.no_repeat_ngram), p.no_repeat_ngram >= 0,
       "0 (off) or more"},
      {"max_new_tokens", static_cast<double>(p.max_new_tokens), p.max_new_tokens >= 1, "1 or more"},
      {"min_new_tokens", static_cast<double>(p.min_new_tokens),
       p.min_new_tokens >= 0 && p.min_new_tokens <= p.max_new_tokens, "0 to max_new_tokens"},
      {"top_logprobs", static_cast<double>(p.top_logprobs),
       p.top_logprobs >= 0 && p.top_logprobs <= max_logprobs, "0 to 1000"},
  };
  return all_of(rules);
}

Result<> validate_beams(const SamplingParams& p) {
  const Beams& b = p.beams;
  const Rule rules[] = {
      {"num_beams", static_cast<double>(b.count), b.count >= 1 && b.count <= max_beams,
       "1 (no beam search) to 64"},
      {"length_penalty", b.length_penalty, b.length_penalty >= -100 && b.length_penalty <= 100,
       "-100 to 100"},
      {"num_return_sequences", static_cast<double>(b.returned),
       b.returned >= 1 && b.returned <= (b.count == 1 ? max_return_sequences : b.count),
       b.count == 1 ? "1 to 4096" : "1 to num_beams"},
  };
  static_assert(max_return_sequences == 4096);
  const std::int64_t tokens = std::int64_t{b.returned} * p.max_new_tokens;
  if (b.returned > 1 && b.returned <= max_return_sequences && tokens > max_returned_tokens)
    return fail(Errc::usage, cat("num_return_sequences is ", b.returned, " and max_new_tokens is ",
                                 p.max_new_tokens, "; allowed: at most ", max_returned_tokens,
                                 " tokens of all sequences together"));
  if (auto ok = all_of(rules); !ok || b.count == 1) return ok;
  if (p.top_logprobs > 0)
    return fail(Errc::usage,
                cat("num_beams is ", b.count, ": beam search reports no top_logprobs; remove it"));
  return {};
}

Result<> validate_ids(const char* name, const std::vector<std::int32_t>& ids,
                      std::int64_t vocabulary) {
  if (ids.size() > max_ids)
    return fail(Errc::usage, cat(name, ": ", ids.size(), " ids; allowed: at most ", max_ids));
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= vocabulary) {
      return fail(Errc::usage, cat(name, ": ", id, " is not a token of this model; allowed: 0 to ",
                                   vocabulary - 1));
    }
  }
  return {};
}

Result<> validate_token_list(const char* name, const std::vector<std::int32_t>& ids,
                             std::int64_t vocabulary) {
  if (ids.empty() || ids.size() > max_token_list_length) {
    return fail(Errc::usage, cat(name, ": a list of ", ids.size(), " ids; allowed: 1 to ",
                                 max_token_list_length));
  }
  return validate_ids(name, ids, vocabulary);
}

Result<> validate_token_rules(const TokenRules& w, std::int64_t vocabulary) {
  const Rule rules[] = {
      {"encoder_repetition_penalty", w.prompt_repetition_penalty,
       w.prompt_repetition_penalty >= 1e-3 && w.prompt_repetition_penalty <= 1e3,
       "0.001 to 1000, 1 for none"},
      {"encoder_no_repeat_ngram_size", static_cast<double>(w.prompt_no_repeat_ngram),
       w.prompt_no_repeat_ngram >= 0, "0 (off) or more"},
      {"exponential_decay_length_penalty", w.decay_factor,
       w.decay_factor > 0 && w.decay_factor <= 1e3, "a factor above 0, at most 1000"},
      {"exponential_decay_length_penalty", static_cast<double>(w.decay_start), w.decay_start >= 0,
       "to start after 0 tokens or more"},
      {"bad_words_ids", static_cast<double>(w.bad_words.size()),
       w.bad_words.size() <= max_token_lists, "at most 65536 lists"},
      {"sequence_bias", static_cast<double>(w.sequence_bias.size()),
       w.sequence_bias.size() <= max_token_lists, "at most 65536 lists"},
  };
  RETURN_IF_ERROR(all_of(rules));
  using Named = std::pair<const char*, const std::vector<std::int32_t>*>;
  for (const auto& [name, ids] : {Named{"suppress_tokens", &w.suppress_tokens},
                                  Named{"begin_suppress_tokens", &w.begin_suppress_tokens},
                                  Named{"forced_bos_token_id", &w.forced_first},
                                  Named{"forced_eos_token_id", &w.forced_last}}) {
    RETURN_IF_ERROR(validate_ids(name, *ids, vocabulary));
  }
  for (const auto& ids : w.bad_words) {
    RETURN_IF_ERROR(validate_token_list("bad_words_ids", ids, vocabulary));
  }
  for (const SequenceBias& each : w.sequence_bias) {
    RETURN_IF_ERROR(validate_token_list("sequence_bias", each.ids, vocabulary));
    const Rule bias[] = {
        {"sequence_bias", each.bias, each.bias >= -1e6 && each.bias <= 1e6, "-1000000 to 1000000"}};
    RETURN_IF_ERROR(all_of(bias));
  }
  return {};
}

Result<> validate_stops(const SamplingParams& p, std::int64_t vocabulary) {
  if (p.stop_strings.size() > max_stop_strings) {
    return fail(Errc::usage, cat("stop: ", p.stop_strings.size(), " strings; allowed: at most ",
                                 max_stop_strings));
  }
  for (const std::string& stop : p.stop_strings) {
    if (stop.empty())
      return fail(Errc::usage, "stop: an empty string would end every output at once; remove it");
    if (stop.size() > max_stop_string_bytes) {
      return fail(Errc::usage, cat("stop: ", quote(stop), " has ", stop.size(),
                                   " bytes; allowed: at most ", max_stop_string_bytes));
    }
  }
  if (p.stop_tokens.size() > max_stop_tokens) {
    return fail(Errc::usage, cat("stop_tokens: ", p.stop_tokens.size(), " ids; allowed: at most ",
                                 max_stop_tokens));
  }
  return validate_ids("stop_tokens", p.stop_tokens, vocabulary);
}

}  // namespace

Result<> validate(const SamplingParams& params, std::int64_t vocabulary) {
  RETURN_IF_ERROR(validate_numbers(params));
  RETURN_IF_ERROR(validate_beams(params));
  RETURN_IF_ERROR(validate_token_rules(params.token_rules, vocabulary));
  return validate_stops(params, vocabulary);
}

}  // namespace troupe::engine::generate
