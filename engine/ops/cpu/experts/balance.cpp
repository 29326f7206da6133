// Sums over tokens that tell how evenly a router uses its experts, and the gradient through them,
// in f64.
#include <algorithm>
#include <cmath>

#include "engine/ops/cpu/experts/router.h"
#include "engine/ops/cpu/host_device.h"
#include "engine/ops/memory/host_buffer.h"
#include "engine/ops/shapes.h"

namespace troupe::engine::ops::cpu {
namespace {

void check_segments(const Router& how, const Tensor& logits, std::span<const std::int32_t> offsets,
                    std::size_t segments) {
  check(width_of(logits) == how.experts && offsets.size() == segments + 1 && offsets[0] == 0 &&
            offsets.back() == rows_of(logits) && std::ranges::is_sorted(offsets),
        "router sums: rows and segments disagree");
}

// Values of every token, which threads compute and one of them adds in the order of tokens.
struct TokenValues {
  std::vector<double> shares;            // [T, E]
  std::vector<double> lse;               // [T]
  std::vector<std::int32_t> favourites;  // [T, k]
};

void add_token(const Router& how, const TokenValues& of, std::int64_t t, RouterSums& sums) {
  for (std::int64_t e = 0; e < how.experts; ++e)
    sums.shares[at(e)] += of.shares[at(t * how.experts + e)];
  for (std::int64_t i = t * how.chosen; i < (t + 1) * how.chosen; ++i)
    ++sums.favourites[at(of.favourites[at(i)])];
  sums.squares += of.lse[at(t)] * of.lse[at(t)];
}

}  // namespace

void HostDevice::add_router_sums(const Router& how, const Tensor& logits, const Routes& routes,
                                 std::span<const std::int32_t> offsets, std::span<RouterSums> sums,
                                 bool shares) {
  check_segments(how, logits, offsets, sums.size());
  check(rows_of(routes.experts) == rows_of(logits) && width_of(routes.experts) == how.chosen,
        "router sums: logits and routes disagree");
  const std::int64_t tokens = rows_of(logits), width = how.experts, k = how.chosen;
  const float* values = data(logits);
  const std::int32_t *chosen = i32_data(routes.experts), *places = i32_data(routes.places);
  TokenValues of;
  if (shares) {
    of = {std::vector<double>(at(tokens * width)), std::vector<double>(at(tokens)),
          std::vector<std::int32_t>(at(tokens * k))};
    for_ranges(tokens, 40 * width, [&](std::int64_t begin, std::int64_t end) {
      std::vector<double> own;
      for (std::int64_t t = begin; t < end; ++t) {
        of.lse[at(t)] = shares_of_token(how, row(values, t, width), own);
        std::ranges::copy(own, of.shares.begin() + t * width);
        favourites_of_token(row(values, t, width),
                            std::span(of.favourites).subspan(at(t * k), at(k)));
      }
    });
  }
  for (std::size_t n = 0; n < sums.size(); ++n) {
    sums[n].routed.resize(at(width));
    sums[n].favourites.resize(at(width));
    sums[n].shares.resize(at(width));
    sums[n].tokens += offsets[n + 1] - offsets[n];
    for (std::int64_t t = offsets[n]; t < offsets[n + 1]; ++t) {
      for (std::int64_t i = t * k; i < (t + 1) * k; ++i) {
        ++sums[n].routed[at(chosen[i])];
        sums[n].dropped += places[i] < 0 ? 1 : 0;
      }
      if (shares) add_token(how, of, t, sums[n]);
    }
  }
}

void HostDevice::add_router_slopes(const Router& how, const Tensor& logits,
                                   const RouterSlopes& slopes, Tensor& dlogits) {
  const std::int64_t width = how.experts;
  check_segments(how, logits, slopes.offsets, slopes.shares.size() / at(width));
  check_same_size("add_router_slopes", {&logits, &dlogits});
  const float* values = data(logits);
  float* sums = mutable_data(dlogits);
  // d(share)/d(logit) of the logistic score s, with q = s / (sum of s): (1 - s) q (slope - mean).
  const bool logistic = how.score == RouterScore::sigmoid;
  for_ranges(rows_of(logits), 40 * width, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> shares, softmax;
    const Router exponential{.experts = how.experts, .chosen = how.chosen};
    for (std::int64_t t = begin; t < end; ++t) {
      const auto n = std::ranges::upper_bound(slopes.offsets, t) - slopes.offsets.begin() - 1;
      const double* slope = slopes.shares.data() + n * width;
      const double lse = shares_of_token(how, row(values, t, width), shares);
      if (logistic) shares_of_token(exponential, row(values, t, width), softmax);
      double mean = 0;
      for (std::int64_t e = 0; e < width; ++e) mean += shares[at(e)] * slope[e];
      for (std::int64_t e = 0; e < width; ++e) {
        const auto logit = static_cast<double>(values[t * width + e]);
        const double inner = logistic ? 1 / (1 + std::exp(logit)) : 1;
        const double p = logistic ? softmax[at(e)] : shares[at(e)];
        sums[t * width + e] += static_cast<float>(inner * shares[at(e)] * (slope[e] - mean) +
                                                  slopes.squares * 2 * lse * p);
      }
    }
  });
}

}  // namespace troupe::engine::ops::cpu
