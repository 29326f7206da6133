// Sums of routers' loads, their gradients and capacities on every device, against plain loops over
// doubles.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/ops/memory/host_buffer.h"
#include "tests/engine/ops/every_device.h"

namespace troupe::engine::ops {
namespace {

constexpr std::int64_t tokens = 23, width = 6, k = 2;
constexpr std::int32_t bounds[] = {0, 1, 9, 9, 23};
constexpr std::size_t segments = 4;

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// The definition of RouterSums of one token.
struct Loads {
  Doubles shares;
  double lse = 0;
  Rows favourites;
};

Loads loads_of(RouterScore score, const Floats& logits) {
  Loads out;
  double exponentials = 0, sum = 0;
  for (const float z : logits) exponentials += std::exp(static_cast<double>(z));
  out.lse = std::log(exponentials);
  for (const float z : logits) {
    const double e = std::exp(static_cast<double>(z));
    out.shares.push_back(score == RouterScore::sigmoid ? e / (1 + e) : e);
    sum += out.shares.back();
  }
  for (double& share : out.shares) share /= sum;
  Rows order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return logits[at(a)] > logits[at(b)]; });
  out.favourites = {order.begin(), order.begin() + k};
  return out;
}

class Balance : public OnEveryDevice {
 protected:
  Routes route(const Router& how, const Floats& logits, const Floats& bias = {}) {
    Routes routes{device().empty({tokens, k}), device().empty({tokens, k}, DType::i32),
                  device().empty({tokens, k}, DType::i32), device().empty({tokens * k}, DType::i32),
                  device().empty({width + 1}, DType::i32)};
    device().route(how, put({tokens, width}, logits), bias.empty() ? Tensor() : put({width}, bias),
                   routes);
    return routes;
  }
  std::vector<RouterSums> sums(const Router& how, const Floats& logits, const Routes& routes) {
    std::vector<RouterSums> out(segments);
    device().add_router_sums(how, put({tokens, width}, logits), routes, bounds, out, true);
    return out;
  }
  static Rows integers(const Tensor& x) { return {i32_data(x), i32_data(x) + x.count()}; }
};
INSTANTIATE_TEST_SUITE_P(Devices, Balance, testing::ValuesIn(device_cases()), case_name);

// A bias and groups change the routes, but not the favourites.
TEST_P(Balance, SumsAreThoseOfLoops) {
  Floats logits = random_floats(tokens * width, 1);
  for (float& z : logits) z = std::round(8 * z) / 4;  // with ties
  for (const RouterScore score : {RouterScore::softmax, RouterScore::sigmoid}) {
    const Router how{.experts = width, .chosen = k, .score = score, .groups = 3, .kept_groups = 1};
    const Routes routes = route(how, logits, {0, 1, 0, -1, 2, 0});
    const Rows chosen = integers(routes.experts);
    const auto found = sums(how, logits, routes);
    for (std::size_t n = 0; n < segments; ++n) {
      RouterSums want{.routed = std::vector<std::int64_t>(width),
                      .favourites = std::vector<std::int64_t>(width),
                      .shares = Doubles(width)};
      for (std::int64_t t = bounds[n]; t < bounds[n + 1]; ++t) {
        const Loads own = loads_of(score, slice(logits, t * width, (t + 1) * width));
        for (std::size_t e = 0; e < at(width); ++e) want.shares[e] += own.shares[e];
        for (const auto e : own.favourites) ++want.favourites[at(e)];
        for (std::int64_t i = t * k; i < (t + 1) * k; ++i) ++want.routed[at(chosen[at(i)])];
        want.squares += own.lse * own.lse;
        ++want.tokens;
      }
      EXPECT_EQ(found[n].routed, want.routed);
      EXPECT_EQ(found[n].favourites, want.favourites);
      EXPECT_EQ(found[n].tokens, want.tokens);
      EXPECT_EQ(found[n].dropped, 0);
      EXPECT_NEAR(found[n].squares, want.squares, 1e-12 * std::abs(want.squares));
      for (std::size_t e = 0; e < at(width); ++e)
        EXPECT_NEAR(found[n].shares[e], want.shares[e], 1e-12);
    }
  }
}

// Calls for consecutive rows add in the order of one call, to the bit.
TEST_P(Balance, SumsOfPartsAreThoseOfTheWhole) {
  const Router how{.experts = width, .chosen = k};
  const Floats logits = random_floats(tokens * width, 2);
  const Routes routes = route(how, logits);
  RouterSums whole, parts;
  const std::int32_t all[] = {0, static_cast<std::int32_t>(tokens)};
  device().add_router_sums(how, put({tokens, width}, logits), routes, all, {&whole, 1}, true);
  for (std::size_t n = 0; n < segments; ++n) {
    const std::int32_t rows = bounds[n + 1] - bounds[n];
    const std::int32_t own[] = {0, rows};
    Routes part = routes;
    part.experts = routes.experts.rows(bounds[n], bounds[n + 1]);
    part.places = routes.places.rows(bounds[n], bounds[n + 1]);
    device().add_router_sums(
        how, put({rows, width}, slice(logits, bounds[n] * width, bounds[n + 1] * width)), part, own,
        {&parts, 1}, true);
  }
  EXPECT_EQ(parts.shares, whole.shares);
  EXPECT_EQ(parts.squares, whole.squares);
  EXPECT_EQ(parts.favourites, whole.favourites);
  EXPECT_EQ(parts.routed, whole.routed);
}

TEST_P(Balance, GradientsAreThoseOfFiniteDifferences) {
  const Floats logits = random_floats(tokens * width, 3),
               upstream = random_floats(segments * width, 4);
  const Doubles gradients = as_doubles(upstream);
  constexpr double squares = 0.3, step = 1e-3;
  for (const RouterScore score : {RouterScore::softmax, RouterScore::sigmoid}) {
    const Router how{.experts = width, .chosen = k, .score = score};
    const Routes routes = route(how, logits);
    const auto value = [&](const Floats& z) {
      double out = 0;
      const auto found = sums(how, z, routes);
      for (std::size_t n = 0; n < segments; ++n) {
        for (std::size_t e = 0; e < at(width); ++e)
          out += gradients[n * at(width) + e] * found[n].shares[e];
        out += squares * found[n].squares;
      }
      return out;
    };
    Tensor gradient = filled({tokens, width}, 2);
    device().add_router_slopes(how, put({tokens, width}, logits), {bounds, gradients, squares},
                               gradient);
    const Floats found = get(gradient);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      Floats above = logits, below = logits;
      above[i] += static_cast<float>(step);
      below[i] -= static_cast<float>(step);
      const double h = static_cast<double>(above[i]) - static_cast<double>(below[i]);
      EXPECT_NEAR(static_cast<double>(found[i]) - 2, (value(above) - value(below)) / h, 2e-6)
          << "logit " << i;
    }
  }
}

TEST_P(Balance, DroppedChoicesHaveNoRow) {
  const Router how{.experts = width, .chosen = k};
  Floats logits = random_floats(tokens * width, 5);
  for (std::int64_t t = 0; t < tokens; ++t) logits[at(t * width + 1)] += 2;  // the crowded expert
  for (const std::int64_t capacity : {0, 1, 5, 100})
    for (const DropPolicy policy : {DropPolicy::weight, DropPolicy::position}) {
      Routes routes = route(how, logits);
      const Rows experts = integers(routes.experts), before = integers(routes.places);
      const Floats weights = get(routes.weights);
      std::vector<std::vector<std::int32_t>> kept(at(width));  // choices by expert
      for (std::int32_t i = 0; i < tokens * k; ++i) kept[at(experts[at(i)])].push_back(i);
      for (auto& own : kept) {
        if (policy == DropPolicy::weight)
          std::ranges::stable_sort(own,
                                   [&](auto a, auto b) { return weights[at(a)] > weights[at(b)]; });
        own.resize(std::min(own.size(), at(capacity)));
        std::ranges::sort(own);
      }
      device().drop_choices(capacity, policy, routes);
      Rows places(at(tokens * k), -1), offsets{0};
      for (const auto& own : kept) {
        for (std::size_t i = 0; i < own.size(); ++i)
          places[at(own[i])] = offsets.back() + static_cast<std::int32_t>(i);
        offsets.push_back(offsets.back() + static_cast<std::int32_t>(own.size()));
      }
      EXPECT_EQ(integers(routes.places), places);
      EXPECT_EQ(integers(routes.offsets), offsets);
      EXPECT_EQ(get(routes.weights), weights) << "what is left is not weighted anew";
      if (capacity == 100) {
        EXPECT_EQ(places, before);
      }
    }
}

TEST_P(Balance, DroppedChoicesAddNothing) {
  constexpr std::int64_t size = 5;
  const Router how{.experts = width, .chosen = k};
  Routes routes = route(how, random_floats(tokens * width, 6));
  device().drop_choices(3, DropPolicy::position, routes);
  const Rows places = integers(routes.places);
  const Floats weights = get(routes.weights), rows = random_floats(tokens * k * size, 7);
  const Tensor outputs = put({tokens * k, size}, rows), dy = filled({tokens, size}, 1);
  Tensor y = filled({tokens, size}, 9), sums = filled({tokens, size}, 9),
         permuted = filled({tokens * k, size}, 9), doutputs = filled({tokens * k, size}, 0),
         dweights = filled({tokens, k}, 9);
  device().combine({routes, outputs}, y);
  device().permute_backward(outputs, routes, sums);
  device().permute(dy, routes, permuted);
  device().combine_backward({routes, outputs}, dy, {doutputs, dweights});
  const Floats combined = get(y), added = get(sums), gradient = get(dweights),
               filled_rows = get(permuted);
  double rows_of_ones = 0, kept = 0;
  for (const float value : filled_rows) rows_of_ones += static_cast<double>(value) / size;
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t d = 0; d < size; ++d) {
      float sum = 0, plain = 0;
      for (std::int64_t i = t * k; i < (t + 1) * k; ++i) {
        if (places[at(i)] < 0) {
          EXPECT_EQ(gradient[at(i)], 0);
          continue;
        }
        kept += d == 0;
        sum += weights[at(i)] * rows[at(places[at(i)] * size + d)];
        plain += rows[at(places[at(i)] * size + d)];
      }
      EXPECT_NEAR(combined[at(t * size + d)], sum, 1e-6);
      EXPECT_NEAR(added[at(t * size + d)], plain, 1e-6);
    }
  EXPECT_LT(kept, tokens * k) << "nothing was dropped";
  EXPECT_NEAR(rows_of_ones, kept, 1e-6) << "rows without a choice are 0";
}

}  // namespace
}  // namespace troupe::engine::ops
