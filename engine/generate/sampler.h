// The sampler: from one row of logits to a token. Logits processors (logits_processors.h), softmax
// and sampling are computed in f64.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/generate/logits_processors.h"
#include "engine/ops/types.h"

namespace troupe::engine::generate {

/// Tokens that may be sampled, in ascending order of id, and their renormalized probabilities.
struct Distribution {
  std::vector<std::int32_t> ids;
  std::vector<double> probabilities;
};

/// Applies penalties and, unless greedy, filters. `logits` [V] must be finite (first_nonfinite).
/// Throws Failure (Errc::usage) when every token is banned.
LogitsRow apply_processors(std::span<const float> logits, const ProcessorContext& context);
LogitsRow apply_processors(std::span<const double> logits, const ProcessorContext& context);
Distribution normalize(const LogitsRow& row);
/// Applies only penalties and bans, to the log-probabilities of a beam search; `kept` may become
/// empty.
LogitsRow apply_penalties(std::vector<double> scores, const ProcessorContext& context);
/// Applies only filters; `row` has kept tokens.
void apply_filters(LogitsRow& row, const ProcessorContext& context);

/// Token at quantile `u` in [0, 1) of the distribution, in the order of ids.
std::int32_t sample(const Distribution& distribution, double u);
/// Token with the largest score; the lowest id among equals.
std::int32_t argmax(const LogitsRow& row);
/// How the next token of a sequence is drawn: at the quantile uniform(seed, sample_id, position),
/// where position is the token's index in its sequence.
ops::SamplingRow sampling_row(const ProcessorContext& context, std::uint64_t sample_id);
/// argmax when greedy, otherwise sample() at row.u. Rows without active processors use
/// fast_sample.h. `row`: sampling_row(context, ...). `kept`: as in ops::HostSampler::sample().
std::int32_t sample_token(std::span<const float> logits, const ProcessorContext& context,
                          const ops::SamplingRow& row, std::vector<std::int32_t>* kept = nullptr);

}  // namespace troupe::engine::generate
