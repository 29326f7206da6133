#include "engine/generate/sampling.h"

#include <cmath>

#include "engine/base/text.h"

namespace troupe::engine::generate {

namespace {

constexpr std::size_t most_stop_strings = 64, longest_stop_string = 1024, most_stop_tokens = 1024;
constexpr int most_logprobs = 1000;

/// A number's setting, its value, the values allowed in words, and whether it is one of them.
struct Rule {
  const char* name;
  double value;
  bool ok;
  const char* allowed;
};

Result<> validate_numbers(const SamplingParams& p) {
  const auto within = [](double x, double low, double high) { return x >= low && x <= high; };  // false for nan
  const Rule rules[] = {
      {"temperature", p.temperature, p.temperature == 0 || within(p.temperature, 1e-3, 1e3), "0 (greedy), or 0.001 to 1000"},
      {"top_k", static_cast<double>(p.top_k), p.top_k >= 0, "0 (all tokens) or more"},
      {"top_p", p.top_p, p.top_p > 0 && p.top_p <= 1, "above 0, at most 1 (all tokens)"},
      {"min_p", p.min_p, within(p.min_p, 0, 1), "0 (all tokens) to 1"},
      {"typical_p", p.typical_p, p.typical_p > 0 && p.typical_p <= 1, "above 0, at most 1 (all tokens)"},
      {"epsilon_cutoff", p.epsilon_cutoff, p.epsilon_cutoff >= 0 && p.epsilon_cutoff < 1, "0 (all tokens) or more, below 1"},
      {"repetition_penalty", p.repetition_penalty, within(p.repetition_penalty, 1e-3, 1e3), "0.001 to 1000, 1 for none"},
      {"presence_penalty", p.presence_penalty, within(p.presence_penalty, -1e3, 1e3), "-1000 to 1000, 0 for none"},
      {"frequency_penalty", p.frequency_penalty, within(p.frequency_penalty, -1e3, 1e3), "-1000 to 1000, 0 for none"},
      {"no_repeat_ngram_size", static_cast<double>(p.no_repeat_ngram), p.no_repeat_ngram >= 0, "0 (off) or more"},
      {"max_new_tokens", static_cast<double>(p.max_new_tokens), p.max_new_tokens >= 1, "1 or more"},
      {"min_new_tokens", static_cast<double>(p.min_new_tokens), p.min_new_tokens >= 0 && p.min_new_tokens <= p.max_new_tokens,
       "0 to max_new_tokens"},
      {"top_logprobs", static_cast<double>(p.top_logprobs), p.top_logprobs >= 0 && p.top_logprobs <= most_logprobs, "0 to 1000"},
  };
  for (const Rule& rule : rules) {
    if (!rule.ok) return fail(Errc::usage, cat(rule.name, " is ", rule.value, "; allowed: ", rule.allowed));
  }
  return {};
}

Result<> validate_stops(const SamplingParams& p, std::int64_t vocabulary) {
  if (p.stop_strings.size() > most_stop_strings) {
    return fail(Errc::usage, cat("stop: ", p.stop_strings.size(), " strings; allowed: at most ", most_stop_strings));
  }
  for (const std::string& stop : p.stop_strings) {
    if (stop.empty()) return fail(Errc::usage, "stop: an empty string would end every output at once; remove it");
    if (stop.size() > longest_stop_string) {
      return fail(Errc::usage, cat("stop: ", quote(stop), " has ", stop.size(), " bytes; allowed: at most ", longest_stop_string));
    }
  }
  if (p.stop_tokens.size() > most_stop_tokens) {
    return fail(Errc::usage, cat("stop_tokens: ", p.stop_tokens.size(), " ids; allowed: at most ", most_stop_tokens));
  }
  for (const std::int32_t id : p.stop_tokens) {
    if (id < 0 || id >= vocabulary) {
      return fail(Errc::usage, cat("stop_tokens: ", id, " is not a token of this model; allowed: 0 to ", vocabulary - 1));
    }
  }
  return {};
}

}  // namespace

Result<> validate(const SamplingParams& params, std::int64_t vocabulary) {
  if (auto numbers = validate_numbers(params); !numbers) return numbers;
  return validate_stops(params, vocabulary);
}

}  // namespace troupe::engine::generate
