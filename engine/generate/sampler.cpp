#include "engine/generate/sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/random/random.h"
#include "engine/base/text/text.h"
#include "engine/generate/fast_sample.h"

namespace troupe::engine::generate {

namespace {

template <class Value>
LogitsRow run_chain(std::span<const Value> logits, const ProcessorContext& context) {
  LogitsRow row = apply_penalties({logits.begin(), logits.end()}, context);
  if (row.kept.empty()) {
    throw Failure(Error{Errc::usage,
                        cat("generate: penalties and bans (min_new_tokens, no_repeat_ngram_size, "
                            "bad_words, suppress_tokens, forced "
                            "tokens, a constraint) ban every token of the vocabulary at position ",
                            context.tokens.size(), "; relax one of them")});
  }
  if (!context.params.is_greedy()) apply_filters(row, context);
  return row;
}

}  // namespace

LogitsRow apply_penalties(std::vector<double> scores, const ProcessorContext& context) {
  LogitsRow row;
  row.score = std::move(scores);
  row.kept.resize(row.score.size());
  std::iota(row.kept.begin(), row.kept.end(), 0);
  for (const LogitsProcessor step : penalties()) step(row, context);
  return row;
}

void apply_filters(LogitsRow& row, const ProcessorContext& context) {
  for (const LogitsProcessor step : filters()) step(row, context);
}

LogitsRow apply_processors(std::span<const float> logits, const ProcessorContext& context) {
  return run_chain(logits, context);
}
LogitsRow apply_processors(std::span<const double> logits, const ProcessorContext& context) {
  return run_chain(logits, context);
}

Distribution normalize(const LogitsRow& row) {
  return {row.kept, probabilities(row)};
}

std::int32_t sample(const Distribution& distribution, double u) {
  check(!distribution.ids.empty(), "sample: no token is left");
  double sum = 0;
  for (std::size_t i = 0; i < distribution.ids.size(); ++i) {
    sum += distribution.probabilities[i];
    if (u < sum) return distribution.ids[i];
  }
  // Rounding may leave the sum slightly below 1: return the last token with nonzero probability.
  std::size_t last = distribution.ids.size() - 1;
  while (last > 0 && distribution.probabilities[last] == 0) --last;
  return distribution.ids[last];
}

std::int32_t argmax(const LogitsRow& row) {
  check(!row.kept.empty(), "argmax: no token is left");
  return *std::max_element(row.kept.begin(), row.kept.end(), [&](std::int32_t a, std::int32_t b) {
    return row.score[a] < row.score[b];
  });
}

ops::SamplingRow sampling_row(const ProcessorContext& context, std::uint64_t sample_id) {
  const SamplingParams& params = context.params;
  const bool greedy = params.is_greedy();
  return {greedy, greedy ? 1 : params.temperature,
          greedy ? 0 : uniform(params.seed, sample_id, context.tokens.size()),
          context.allowed != nullptr || !has_no_processors(params)};
}

std::int32_t sample_token(std::span<const float> logits, const ProcessorContext& context,
                          const ops::SamplingRow& row, std::vector<std::int32_t>* kept) {
  if (!row.processed) {
    if (row.greedy) return argmax(logits);
    if (const auto token = fast_sample(logits, row.temperature, row.u)) return *token;
  }
  LogitsRow left = apply_processors(logits, context);
  const std::int32_t id = row.greedy ? argmax(left) : sample(normalize(left), row.u);
  if (kept != nullptr && left.kept.size() < left.score.size()) *kept = std::move(left.kept);
  return id;
}

}  // namespace troupe::engine::generate
