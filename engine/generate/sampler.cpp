#include "engine/generate/sampler.h"

#include <algorithm>
#include <numeric>

#include "engine/base/check.h"
#include "engine/base/random.h"
#include "engine/base/text.h"
#include "engine/generate/fast_sample.h"

namespace troupe::engine::generate {

namespace {

template <class Value>
Row run_chain(std::span<const Value> logits, const Context& context) {
  Row row = penalise({logits.begin(), logits.end()}, context);
  if (row.kept.empty()) {
    throw Failure(
        Error{Errc::usage, cat("generate: the rules (min_new_tokens, no_repeat_ngram_size, "
                               "bad_words_ids, suppress_tokens, forced "
                               "tokens) together ban every token of the vocabulary at position ",
                               context.tokens.size(), "; loosen one of them")});
  }
  if (!context.params.is_greedy()) {
    for (const Step step : filters()) step(row, context);
  }
  return row;
}

}  // namespace

Row penalise(std::vector<double> scores, const Context& context) {
  Row row;
  row.score = std::move(scores);
  row.kept.resize(row.score.size());
  std::iota(row.kept.begin(), row.kept.end(), 0);
  for (const Step step : penalties()) step(row, context);
  return row;
}

Row process(std::span<const float> logits, const Context& context) {
  return run_chain(logits, context);
}
Row process(std::span<const double> logits, const Context& context) {
  return run_chain(logits, context);
}

Distribution normalise(const Row& row) {
  return {row.kept, probabilities(row)};
}

std::int32_t draw(const Distribution& distribution, double u) {
  check(!distribution.ids.empty(), "draw: no token is left");
  double sum = 0;
  for (std::size_t i = 0; i < distribution.ids.size(); ++i) {
    sum += distribution.probabilities[i];
    if (u < sum) return distribution.ids[i];
  }
  // Rounding may leave the sum a little below 1: the last token that has any probability takes the
  // rest.
  std::size_t last = distribution.ids.size() - 1;
  while (last > 0 && distribution.probabilities[last] == 0) --last;
  return distribution.ids[last];
}

std::int32_t argmax(const Row& row) {
  check(!row.kept.empty(), "argmax: no token is left");
  return *std::max_element(row.kept.begin(), row.kept.end(), [&](std::int32_t a, std::int32_t b) {
    return row.score[a] < row.score[b];
  });
}

std::int32_t choose(std::span<const float> logits, const Context& context,
                    std::uint64_t sample_id) {
  const SamplingParams& params = context.params;
  const bool plain = is_plain(params);
  if (params.is_greedy()) return plain ? argmax(logits) : argmax(process(logits, context));
  const double u = uniform(params.seed, sample_id, context.tokens.size());
  if (plain) {
    if (const auto token = quick_draw(logits, params.temperature, u)) return *token;
  }
  return draw(normalise(process(logits, context)), u);
}

}  // namespace troupe::engine::generate
