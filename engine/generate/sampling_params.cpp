#include "engine/generate/sampling_params.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "engine/base/sets/id_sets.h"
#include "engine/base/text/text.h"
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
  std::string wrong;
  SamplingParams::each_field(p, [&](const char* name, const auto& value, const auto&... rest) {
    if (wrong.empty()) wrong = out_of_range(name, value, detail::range_of(rest...));
  });
  if (!wrong.empty()) return fail(Errc::usage, wrong);
  const Rule rules[] = {
      {"min_new_tokens", static_cast<double>(p.min_new_tokens),
       p.min_new_tokens <= p.max_new_tokens, "0 to max_new_tokens"},
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
      {"bad_words", static_cast<double>(w.bad_words.size()), w.bad_words.size() <= max_token_lists,
       "at most 65536 lists"},
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
  for (const BadWord& word : w.bad_words) {
    if (!word.text.empty())
      return fail(Errc::usage, cat("bad_words: ", quote(word.text, 60),
                                   " is a text, and there is no tokenizer; give lists of ids"));
    RETURN_IF_ERROR(validate_token_list("bad_words", word.ids, vocabulary));
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

SamplingParams SamplingParams::distribution() const {
  SamplingParams out = *this;
  const SamplingParams defaults;
  out.max_new_tokens = defaults.max_new_tokens;
  out.min_new_tokens = defaults.min_new_tokens;
  out.stop_strings = defaults.stop_strings;
  out.stop_tokens = defaults.stop_tokens;
  out.ignore_eos = defaults.ignore_eos;
  return out;
}

bool SamplingParams::changes_distribution(std::string_view name) {
  bool found = name == "min_new_tokens";
  const SamplingParams params;
  const auto compare = [&](std::string_view each, const auto&...) {
    found = found || each == name;
  };
  each_filter(params, compare);
  each_penalty(params, compare);
  return found && name != "temperature";
}

bool SamplingParams::removes_tokens() const {
  const TokenRules& rules = token_rules;
  const bool filters = !is_greedy() && (top_k > 0 || top_p < 1 || min_p > 0 || typical_p < 1 ||
                                        epsilon_cutoff > 0 || eta_cutoff > 0 || top_h > 0);
  return filters || no_repeat_ngram > 0 || min_new_tokens > 0 || !rules.bad_words.empty() ||
         !rules.suppress_tokens.empty() || !rules.begin_suppress_tokens.empty() ||
         !rules.forced_first.empty() || !rules.forced_last.empty() ||
         rules.prompt_no_repeat_ngram > 0;
}

bool SamplingParams::changes_logits() const {
  const TokenRules& rules = token_rules;
  return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0 ||
         !rules.sequence_bias.empty() || rules.prompt_repetition_penalty != 1 ||
         rules.decay_factor != 1;
}

std::int64_t SamplingParams::max_mask_bytes(std::int64_t vocabulary) const {
  // Ties with the k-th token are kept too, but equal logits are rare.
  constexpr std::int64_t ties = 16, longest_top_h = 100;
  if (!removes_tokens()) return 0;
  std::int64_t most = vocabulary;
  if (top_k > 0 && !is_greedy()) most = std::min(most, top_k + ties);
  if (top_h > 0 && !is_greedy()) most = std::min(most, longest_top_h);
  // A difference of ids has at most as many bytes as the largest id.
  const std::int64_t id_bytes = vocabulary <= 1 << 7 ? 1 : vocabulary <= 1 << 14 ? 2 : 3;
  return std::min(max_id_set_bytes(vocabulary), 1 + id_bytes * most);
}

Result<> resolve_bad_words(SamplingParams& params, const EncodeText& encode) {
  const auto& words = params.token_rules.bad_words;
  const auto texts =
      std::ranges::count_if(words, [](const auto& word) { return !word.text.empty(); });
  if (std::cmp_greater(texts, max_bad_words))
    return fail(Errc::usage, cat("bad_words: ", texts, " texts; allowed: at most ", max_bad_words));
  std::vector<BadWord> resolved;
  for (BadWord& word : params.token_rules.bad_words) {
    if (!word.ids.empty() || !encode) {
      resolved.push_back(std::move(word));
      continue;
    }
    if (word.text.size() > max_bad_word_bytes)
      return fail(Errc::usage, cat("bad_words: ", quote(word.text, 60), " has ", word.text.size(),
                                   " bytes; allowed: at most ", max_bad_word_bytes));
    const std::string text =
        word.text.substr(std::min(word.text.find_first_not_of(' '), word.text.size()));
    if (text.empty()) return fail(Errc::usage, "bad_words: a text is empty");
    auto alone = encode(text), within = encode(" " + text);
    RETURN_IF_ERROR(alone);
    RETURN_IF_ERROR(within);
    const bool same = *alone == *within;
    resolved.push_back({"", std::move(*alone)});
    if (!same) resolved.push_back({"", std::move(*within)});
  }
  params.token_rules.bad_words = std::move(resolved);
  return {};
}

Result<> validate(const SamplingParams& params, std::int64_t vocabulary) {
  RETURN_IF_ERROR(validate_numbers(params));
  RETURN_IF_ERROR(validate_beams(params));
  RETURN_IF_ERROR(validate_token_rules(params.token_rules, vocabulary));
  return validate_stops(params, vocabulary);
}

}  // namespace troupe::engine::generate
