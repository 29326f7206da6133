#include "engine/generate/fast_sample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "engine/base/check.h"
#include "engine/generate/simd_softmax.h"

namespace troupe::engine::generate {

namespace {

constexpr float nothing = -std::numeric_limits<float>::infinity();

/// visit(a block of logits, its place); the last is filled up with `rest`.
template <class Visit>
void for_each_block(std::span<const float> logits, float rest, Visit visit) {
  std::size_t at = 0;
  for (; at + row_block <= logits.size(); at += row_block) visit(logits.data() + at, at);
  if (at == logits.size()) return;
  std::array<float, row_block> last;
  last.fill(rest);
  std::copy(logits.begin() + static_cast<std::ptrdiff_t>(at), logits.end(), last.begin());
  visit(last.data(), at);
}

/// The largest of some logits, and where the block begins that has it first.
struct Top {
  float logit = nothing;
  std::size_t place = 0;
};

Top top_of(std::span<const float> logits) {
  check(!logits.empty(), "a row without logits");
  const RowPasses& passes = row_passes();
  Top top;
  for_each_block(logits, nothing, [&](const float* z, std::size_t at) {
    if (const float here = passes.largest(z); here > top.logit) top = {here, at};
  });
  return top;
}

/// 2^(scale * logit - base) for each logit.
struct Weights {
  std::span<const float> logits;
  double scale, base;
};

/// Where u times the sum of the weights falls when they are laid end to end, by the sums that
/// sum_of(block) gives; nothing where that is within `margin` of the whole of a border.
template <class Sum>
std::optional<std::int32_t> place_of(const Weights& of, double u, double margin, Sum sum_of) {
  std::vector<double> sums;
  sums.reserve(of.logits.size() / row_block + 1);
  double total = 0, before = 0;
  for_each_block(of.logits, nothing,
                 [&](const float* z, std::size_t) { total += sums.emplace_back(sum_of(z)); });
  std::size_t at = 0;
  while (at + 1 < sums.size() && before + sums[at] <= u * total) before += sums[at++];
  const auto here =
      of.logits.subspan(at * row_block, std::min(row_block, of.logits.size() - at * row_block));
  std::array<double, row_block> weights;
  for_each_block(here, nothing, [&](const float* z, std::size_t) {
    row_passes().weigh(z, of.scale, of.base, weights.data());
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

bool is_plain(const SamplingParams& params) {
  SamplingParams plain;  // and what chooses no token
  plain.greedy = params.greedy, plain.temperature = params.temperature, plain.seed = params.seed;
  plain.max_new_tokens = params.max_new_tokens, plain.ignore_eos = params.ignore_eos,
  plain.top_logprobs = params.top_logprobs;
  plain.stop_tokens = params.stop_tokens, plain.stop_strings = params.stop_strings;
  return params == plain;
}

std::int64_t first_not_finite(std::span<const float> logits) {
  const RowPasses& passes = row_passes();
  std::int64_t bad = -1;
  for_each_block(logits, 0, [&](const float* z, std::size_t at) {
    if (bad >= 0 || passes.all_finite(z)) return;
    bad = std::find_if(z, z + row_block, [](float x) { return !std::isfinite(x); }) - z +
          static_cast<std::int64_t>(at);
  });
  return bad;
}

std::int32_t argmax(std::span<const float> logits) {
  const Top top = top_of(logits);
  const auto from = logits.begin() + static_cast<std::ptrdiff_t>(top.place);
  return static_cast<std::int32_t>(std::find(from, logits.end(), top.logit) - logits.begin());
}

std::optional<std::int32_t> quick_draw(std::span<const float> logits, double temperature,
                                       double u) {
  // The chain rounds logits / temperature, up to this size by 1e-11, and adds up its terms, up to
  // this many to 3e-10 of the whole.
  constexpr double largest_quotient = 1e5, margin = 1e-9;
  constexpr std::size_t most_logits = std::size_t{1} << 20;
  const double top = top_of(logits).logit, scale = std::numbers::log2e / temperature;
  if (std::abs(top) > largest_quotient * temperature || logits.size() > most_logits) return {};
  const RowPasses& passes = row_passes();
  const Weights weights{logits, scale, std::nearbyint(top * scale)};
  if (passes.rough_sum != nullptr) {  // the sum over all and the one before the token are off
    const auto sum = [&](const float* z) {
      return passes.rough_sum(z, weights.scale, weights.base);
    };
    if (const auto token = place_of(weights, u, margin + 2 * rough_error, sum)) return token;
  }
  std::array<double, row_block> memory;
  return place_of(weights, u, margin, [&](const float* z) {
    return passes.weigh(z, weights.scale, weights.base, memory.data());
  });
}

}  // namespace troupe::engine::generate
