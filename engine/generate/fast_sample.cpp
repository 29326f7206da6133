#include "engine/generate/fast_sample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "engine/base/errors/check.h"
#include "engine/generate/simd_softmax.h"

namespace troupe::engine::generate {

namespace {

constexpr float negative_infinity = -std::numeric_limits<float>::infinity();

/// Calls visit(block of logits, offset); pads the last block with `padding`.
template <class Visit>
void for_each_block(std::span<const float> logits, float padding, Visit visit) {
  std::size_t at = 0;
  for (; at + row_block <= logits.size(); at += row_block) visit(logits.data() + at, at);
  if (at == logits.size()) return;
  std::array<float, row_block> last;
  last.fill(padding);
  std::copy(logits.begin() + static_cast<std::ptrdiff_t>(at), logits.end(), last.begin());
  visit(last.data(), at);
}

/// Largest logit and the offset of the first block that contains it.
struct Top {
  float logit = negative_infinity;
  std::size_t block = 0;
};

Top top_of(std::span<const float> logits) {
  check(!logits.empty(), "fast_sample: empty row");
  const SimdSoftmax& simd = simd_softmax();
  Top top;
  for_each_block(logits, negative_infinity, [&](const float* z, std::size_t at) {
    if (const float here = simd.largest(z); here > top.logit) top = {here, at};
  });
  return top;
}

/// Weights 2^(scale * logit - base).
struct Weights {
  std::span<const float> logits;
  double scale, base;
};

/// Index at which the cumulative weight reaches u times the total, from the block sums
/// sum_of(block); nullopt where u is within `margin` of a boundary between two tokens.
template <class Sum>
std::optional<std::int32_t> index_at(const Weights& of, double u, double margin, Sum sum_of) {
  std::vector<double> sums;
  sums.reserve(of.logits.size() / row_block + 1);
  double total = 0, before = 0;
  for_each_block(of.logits, negative_infinity,
                 [&](const float* z, std::size_t) { total += sums.emplace_back(sum_of(z)); });
  std::size_t at = 0;
  while (at + 1 < sums.size() && before + sums[at] <= u * total) before += sums[at++];
  const auto here =
      of.logits.subspan(at * row_block, std::min(row_block, of.logits.size() - at * row_block));
  std::array<double, row_block> weights;
  for_each_block(here, negative_infinity, [&](const float* z, std::size_t) {
    simd_softmax().exp2_weights(z, of.scale, of.base, weights.data());
  });
  for (std::size_t i = 0; i < here.size(); before += weights[i++]) {
    const double below = u * total - before, above = weights[i] - below;
    if (above <= 0) continue;
    if (below < margin * total || above < margin * total) return {};
    return static_cast<std::int32_t>(at * row_block + i);
  }
  return {};
}

}  // namespace

bool has_no_processors(const SamplingParams& params) {
  SamplingParams plain;  // defaults, except for settings that do not change the distribution
  plain.greedy = params.greedy;
  plain.temperature = params.temperature;
  plain.seed = params.seed;
  plain.max_new_tokens = params.max_new_tokens;
  plain.ignore_eos = params.ignore_eos;
  plain.top_logprobs = params.top_logprobs;
  plain.stop_tokens = params.stop_tokens;
  plain.stop_strings = params.stop_strings;
  return params == plain;
}

std::int64_t first_nonfinite(std::span<const float> logits) {
  const SimdSoftmax& simd = simd_softmax();
  std::int64_t bad = -1;
  for_each_block(logits, 0, [&](const float* z, std::size_t at) {
    if (bad >= 0 || simd.all_finite(z)) return;
    bad = std::find_if(z, z + row_block, [](float x) { return !std::isfinite(x); }) - z +
          static_cast<std::int64_t>(at);
  });
  return bad;
}

std::int32_t argmax(std::span<const float> logits) {
  const Top top = top_of(logits);
  const auto from = logits.begin() + static_cast<std::ptrdiff_t>(top.block);
  return static_cast<std::int32_t>(std::find(from, logits.end(), top.logit) - logits.begin());
}

std::optional<std::int32_t> fast_sample(std::span<const float> logits, double temperature,
                                        double u) {
  // The general path rounds logits / temperature (up to this quotient, by 1e-11) and sums its terms
  // (up to this many, to a relative error of 3e-10).
  constexpr double largest_quotient = 1e5, margin = 1e-9;
  constexpr std::size_t max_logits = std::size_t{1} << 20;
  const double top = top_of(logits).logit, scale = std::numbers::log2e / temperature;
  if (std::abs(top) > largest_quotient * temperature || logits.size() > max_logits) return {};
  const SimdSoftmax& simd = simd_softmax();
  const Weights weights{logits, scale, std::nearbyint(top * scale)};
  if (simd.approximate_sum != nullptr) {  // the total and the cumulative sum both have the error
    const auto sum = [&](const float* z) {
      return simd.approximate_sum(z, weights.scale, weights.base);
    };
    if (const auto token = index_at(weights, u, margin + 2 * approximate_sum_error, sum))
      return token;
  }
  std::array<double, row_block> memory;
  return index_at(weights, u, margin, [&](const float* z) {
    return simd.exp2_weights(z, weights.scale, weights.base, memory.data());
  });
}

}  // namespace troupe::engine::generate
