#include "engine/generate/shortcut.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <vector>

#include "engine/base/check.h"

namespace troupe::engine::generate {

namespace {

// GCC and clang vectors, which every processor can follow.
using Four = float __attribute__((vector_size(16)));
using Floats = float __attribute__((vector_size(32)));
using Doubles = double __attribute__((vector_size(64)));
using Integers = std::int64_t __attribute__((vector_size(64)));
constexpr std::size_t lanes = 8, block = 256;  // logits at a time
constexpr float nothing = -std::numeric_limits<float>::infinity();

/// visit(a block of logits, its place); the last is filled up with `rest`.
template <class Visit>
void for_each_block(std::span<const float> logits, float rest, Visit visit) {
  std::size_t at = 0;
  for (; at + block <= logits.size(); at += block) visit(logits.data() + at, at);
  if (at == logits.size()) return;
  std::array<float, block> last;
  last.fill(rest);
  std::copy(logits.begin() + static_cast<std::ptrdiff_t>(at), logits.end(), last.begin());
  visit(last.data(), at);
}

// Four vectors at a time, as each waits for itself.
constexpr std::size_t stride = 4;

float largest(const float* logits) {
  Four best[stride], next[stride];
  std::memcpy(best, logits, sizeof best);
  for (std::size_t i = 4 * stride; i < block; i += 4 * stride) {
    std::memcpy(next, logits + i, sizeof next);
    for (std::size_t j = 0; j < stride; ++j) best[j] = next[j] > best[j] ? next[j] : best[j];
  }
  float all[4 * stride];
  std::memcpy(all, best, sizeof all);
  return *std::max_element(all, all + 4 * stride);
}

bool all_finite(const float* logits) {
  Four sums[stride] = {}, next[stride];
  for (std::size_t i = 0; i < block; i += 4 * stride) {
    std::memcpy(next, logits + i, sizeof next);
    for (std::size_t j = 0; j < stride; ++j) sums[j] += next[j] * 0.0F;  // infinity and NaN times 0 are NaN
  }
  const Four sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return sum[0] + sum[1] + sum[2] + sum[3] == 0;
}

/// weights[i] = 2^(scale * (logits[i] - top)) for a block, none above 1, to about 1e-11 of itself; what would be below 2^-1000 is that.
/// Gives their sum. 2^x is 2^n e^(f ln 2) with n = round(x) and the series of e up to its ninth power, as |f| <= 1/2.
[[gnu::always_inline]] inline double weigh(const float* logits, double top, double scale, double* weights) {
  constexpr double magic = 0x1.8p52;  // adding it rounds to a whole number, which then stands in the last bits
  constexpr double series[] = {1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1, 1};
  Doubles sum{};
  for (std::size_t i = 0; i < block; i += lanes) {
    Floats z;
    std::memcpy(&z, logits + i, sizeof z);
    Doubles x = (__builtin_convertvector(z, Doubles) - top) * scale;
    x = x < -1000.0 ? Doubles{} - 1000.0 : x;
    const Doubles rounded = x + magic, f = (x - (rounded - magic)) * std::numbers::ln2;
    Doubles p = Doubles{} + 1.0 / 362880;
#pragma GCC unroll 9
    for (const double term : series) p = p * f + term;
    Integers bits, n;
    std::memcpy(&bits, &p, sizeof bits);
    std::memcpy(&n, &rounded, sizeof n);
    bits += n << 52;
    std::memcpy(&p, &bits, sizeof p);
    std::memcpy(weights + i, &p, sizeof p);
    sum += p;
  }
  double total = 0;
  for (std::size_t i = 0; i < lanes; ++i) total += sum[i];
  return total;
}

/// The largest of some logits, and where the block begins that has it first.
struct Top {
  float logit = nothing;
  std::size_t place = 0;
};

Top top_of(std::span<const float> logits) {
  check(!logits.empty(), "a row without logits");
  Top top;
  for_each_block(logits, nothing, [&](const float* z, std::size_t at) {
    if (const float here = largest(z); here > top.logit) top = {here, at};
  });
  return top;
}

using Weigh = double (*)(const float* logits, double top, double scale, double* weights);

double weigh_anywhere(const float* logits, double top, double scale, double* weights) { return weigh(logits, top, scale, weights); }

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] double weigh_avx2(const float* logits, double top, double scale, double* weights) {
  return weigh(logits, top, scale, weights);
}
[[gnu::target("avx512f,avx512dq")]] double weigh_avx512(const float* logits, double top, double scale, double* weights) {
  return weigh(logits, top, scale, weights);
}
Weigh best_weigh() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return weigh_avx512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? weigh_avx2 : weigh_anywhere;
}
#else
Weigh best_weigh() { return weigh_anywhere; }
#endif

}  // namespace

bool is_plain(const SamplingParams& params) {
  SamplingParams plain;  // and what chooses no token
  plain.greedy = params.greedy, plain.temperature = params.temperature, plain.seed = params.seed;
  plain.max_new_tokens = params.max_new_tokens, plain.ignore_eos = params.ignore_eos, plain.top_logprobs = params.top_logprobs;
  plain.stop_tokens = params.stop_tokens, plain.stop_strings = params.stop_strings;
  return params == plain;
}

std::int64_t first_not_finite(std::span<const float> logits) {
  std::int64_t bad = -1;
  for_each_block(logits, 0, [&](const float* z, std::size_t at) {
    if (bad >= 0 || all_finite(z)) return;
    bad = std::find_if(z, z + block, [](float x) { return !std::isfinite(x); }) - z + static_cast<std::int64_t>(at);
  });
  return bad;
}

std::int32_t argmax(std::span<const float> logits) {
  const Top top = top_of(logits);
  const auto from = logits.begin() + static_cast<std::ptrdiff_t>(top.place);
  return static_cast<std::int32_t>(std::find(from, logits.end(), top.logit) - logits.begin());
}

std::optional<std::int32_t> quick_draw(std::span<const float> logits, double temperature, double u) {
  static const Weigh weigh_block = best_weigh();
  // The chain rounds logits / temperature, up to this size by 1e-11, and adds up its terms, up to this many to 3e-10 of the whole.
  constexpr double largest_quotient = 1e5, margin = 1e-9;
  constexpr std::size_t most_logits = std::size_t{1} << 20;
  const double top = top_of(logits).logit, scale = std::numbers::log2e / temperature;
  if (std::abs(top) > largest_quotient * temperature || logits.size() > most_logits) return {};

  std::array<double, block> weights;
  std::vector<double> sums;
  double total = 0;
  for_each_block(logits, nothing, [&](const float* z, std::size_t) {
    sums.push_back(weigh_block(z, top, scale, weights.data()));
    total += sums.back();
  });
  double before = 0;
  std::size_t at = 0;
  while (at + 1 < sums.size() && before + sums[at] <= u * total) before += sums[at++];
  const auto here = logits.subspan(at * block, std::min(block, logits.size() - at * block));
  for_each_block(here, nothing, [&](const float* z, std::size_t) { weigh_block(z, top, scale, weights.data()); });
  for (std::size_t i = 0; i < here.size(); before += weights[i++]) {
    const double below = u * total - before, above = weights[i] - below;
    if (above <= 0) continue;
    if (below < margin * total || above < margin * total) return {};
    return static_cast<std::int32_t>(at * block + i);
  }
  return {};
}

}  // namespace troupe::engine::generate
