// Operations of mixtures of experts on every device, against plain loops over doubles.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "engine/ops/memory/host_buffer.h"
#include "tests/engine/ops/every_device.h"

namespace troupe::engine::ops {
namespace {

struct Choice {
  Rows experts;
  Doubles weights;
};

Doubles softmax_of(const Doubles& x) {
  const double largest = *std::ranges::max_element(x);
  Doubles p;
  for (const double v : x) p.push_back(std::exp(v - largest));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& v : p) v /= sum;
  return p;
}

// Indices of the `count` largest values; of equal ones the lower index.
std::set<std::int32_t> best(const Floats& values, std::int64_t count) {
  Rows order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](auto a, auto b) {
    return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
  });
  return {order.begin(), order.begin() + count};
}

/// The definition of Router, by sorting.
Choice expected_choice(const Router& how, const Floats& logits, const Floats& bias) {
  const auto size = static_cast<std::size_t>(how.experts);
  const Doubles wide(logits.begin(), logits.end());
  Doubles scores = softmax_of(wide);
  if (how.score == RouterScore::sigmoid)
    for (std::size_t e = 0; e < size; ++e) scores[e] = 1 / (1 + std::exp(-wide[e]));
  Floats choice;
  for (std::size_t e = 0; e < size; ++e)
    choice.push_back((how.chooses_logits ? logits[e] : static_cast<float>(scores[e])) +
                     (bias.empty() ? 0.0F : bias[e]));
  if (how.groups > 1) {
    const auto each = size / static_cast<std::size_t>(how.groups);
    Floats of_groups;
    for (std::size_t g = 0; g < size; g += each) {
      Floats group(choice.begin() + static_cast<long>(g),
                   choice.begin() + static_cast<long>(g + each));
      std::ranges::sort(group, std::greater());
      const bool two = how.group_score == GroupScore::two_largest && each > 1;
      of_groups.push_back(group[0] + (two ? group[1] : 0));
    }
    const auto kept = best(of_groups, how.kept_groups);
    for (std::size_t e = 0; e < size; ++e)
      if (!kept.contains(static_cast<std::int32_t>(e / each))) choice[e] = how.group_mask;
  }
  Choice out;
  double sum = 0;
  for (const auto e : best(choice, how.chosen)) {
    out.experts.push_back(e);
    sum += scores[static_cast<std::size_t>(e)];
  }
  const double by = how.renormalize == Renormalize::no    ? 1
                    : how.renormalize == Renormalize::sum ? sum + how.epsilon
                                                          : std::max(sum, how.epsilon);
  for (const auto e : out.experts)
    out.weights.push_back(scores[static_cast<std::size_t>(e)] / by * how.scale);
  return out;
}

class Experts : public OnEveryDevice {
 protected:
  Routes empty_routes(const Router& how, std::int64_t tokens) {
    return {device().empty({tokens, how.chosen}), device().empty({tokens, how.chosen}, DType::i32),
            device().empty({tokens, how.chosen}, DType::i32),
            device().empty({tokens * how.chosen}, DType::i32),
            device().empty({how.experts + 1}, DType::i32)};
  }
  static Rows integers(const Tensor& x) { return {i32_data(x), i32_data(x) + x.count()}; }
  Routes route(const Router& how, const Floats& logits, const Floats& bias = {}) {
    const auto tokens = std::ssize(logits) / how.experts;
    Routes routes = empty_routes(how, tokens);
    device().route(how, put({tokens, how.experts}, logits),
                   bias.empty() ? Tensor() : put({how.experts}, bias), routes);
    return routes;
  }
  void expect_defined(const Router& how, const Floats& logits, const Floats& bias,
                      const std::string& name) {
    const Routes routes = route(how, logits, bias);
    const Rows experts = integers(routes.experts);
    const Floats weights = get(routes.weights);
    const auto width = how.experts, k = how.chosen;
    for (std::int64_t t = 0; t < std::ssize(logits) / width; ++t) {
      const Choice want = expected_choice(how, slice(logits, t * width, (t + 1) * width), bias);
      ASSERT_EQ(Rows(experts.begin() + t * k, experts.begin() + (t + 1) * k), want.experts)
          << name << ", row " << t;
      for (std::int64_t j = 0; j < k; ++j)
        ASSERT_NEAR(static_cast<double>(weights[static_cast<std::size_t>(t * k + j)]),
                    want.weights[static_cast<std::size_t>(j)], 1e-6 * how.scale)
            << name << ", row " << t;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Experts, testing::ValuesIn(device_cases()), case_name);

// Logits of few distinct values, so that many rows have ties, and biases below zero.
TEST_P(Experts, RoutersChooseAndWeightAsDefined) {
  std::mt19937 random(1);
  Floats logits(10'000 * 8);
  for (std::size_t i = 0; i < logits.size(); ++i)
    logits[i] = i < logits.size() / 2 ? static_cast<float>(random() % 5) - 2
                                      : static_cast<float>(random() % 65536) / 8192 - 4;
  const Floats biases[] = {
      {}, {-1, -0.5F, 0, 0.25F, -0.75F, -2, 0.125F, -0.0625F}, Floats(8, -3.0F)};
  const float infinity = std::numeric_limits<float>::infinity();
  const std::pair<const char*, Router> cases[] = {
      {"plain", {.experts = 8, .chosen = 2}},
      {"all", {.experts = 8, .chosen = 8, .renormalize = Renormalize::sum}},
      {"logits",
       {.experts = 8, .chosen = 3, .chooses_logits = true, .renormalize = Renormalize::sum}},
      {"one group", {.experts = 8, .chosen = 2, .groups = 1, .kept_groups = 1}},
      {"largest",
       {.experts = 8,
        .chosen = 3,
        .groups = 4,
        .kept_groups = 2,
        .group_score = GroupScore::largest,
        .scale = 16}},
      {"two largest",
       {.experts = 8,
        .chosen = 3,
        .groups = 4,
        .kept_groups = 2,
        .group_mask = -infinity,
        .renormalize = Renormalize::sum,
        .epsilon = 1e-20,
        .scale = 2.5}},
      {"masked with 0", {.experts = 8, .chosen = 4, .groups = 2, .kept_groups = 1}},
      {"groups of one", {.experts = 8, .chosen = 2, .groups = 8, .kept_groups = 3}},
      {"bounded",
       {.experts = 8, .chosen = 2, .renormalize = Renormalize::bounded_sum, .epsilon = 0.5}}};
  for (auto [name, how] : cases)
    for (const Floats& bias : biases)
      for (const RouterScore score : {RouterScore::softmax, RouterScore::sigmoid}) {
        how.score = score;
        expect_defined(how, logits, bias, name);
      }
}

TEST_P(Experts, TheSparseMixerPicksTwice) {
  const Router how{.experts = 4, .chosen = 2, .score = RouterScore::sparse_mixer, .jitter = 0.1};
  // Within 20 % of 2.0: 1.7; of the second largest, 1.7, without the first: 1.5.
  const Routes routes = route(how, {1.7F, 2.0F, 0.1F, 1.5F, 1, 1, -1, -2});
  EXPECT_EQ(integers(routes.experts), (Rows{0, 1, 0, 1}));
  const Floats weights = get(routes.weights);
  EXPECT_NEAR(weights[1], 1 / (1 + std::exp(-0.3)), 1e-6);
  EXPECT_NEAR(weights[0], 1 / (1 + std::exp(-0.2)), 1e-6);
  EXPECT_NEAR(weights[2], 0.5, 1e-6) << "of equal logits the lower index is first";
  EXPECT_NEAR(weights[3], 1, 1e-6);
}

TEST_P(Experts, RowsAreSortedByExpertAndToken) {
  const Router how{.experts = 4, .chosen = 2};
  const Routes routes = route(how, {9, 0, 5, 0, 0, 5, 9, 0, 9, 5, 0, 0});
  EXPECT_EQ(integers(routes.experts), (Rows{0, 2, 1, 2, 0, 1}));
  EXPECT_EQ(integers(routes.offsets), (Rows{0, 2, 4, 6, 6}));
  EXPECT_EQ(integers(routes.places), (Rows{0, 4, 2, 5, 1, 3}));
  EXPECT_EQ(integers(routes.tokens), (Rows{0, 2, 1, 2, 0, 1}));
}

// Ragged products, among them those of experts without rows and of one with all.
TEST_P(Experts, ProductsArePerExpert) {
  constexpr std::int64_t tokens = 37, width = 20, inner = 33;
  for (const bool one : {false, true}) {
    const Router how{.experts = 5, .chosen = 1};
    Floats logits = random_floats(tokens * 5, 1);
    for (std::size_t i = 0; i < logits.size(); ++i)
      if (i % 5 == 3 || (one && i % 5 != 1)) logits[i] = -50;
    const Routes routes = route(how, logits);
    const Rows offsets = integers(routes.offsets), of_rows = integers(routes.tokens);
    const Floats x = random_floats(tokens * width, 2);
    Tensor rows = device().empty({tokens, width}), y = device().empty({tokens, inner}),
           back = filled({tokens, width}, 1);
    device().permute(put({tokens, width}, x), routes, rows);
    std::vector<Tensor> weights, sums;
    for (std::uint64_t e = 0; e < 5; ++e) {
      weights.push_back(put({inner, width}, random_floats(inner * width, 10 + e)));
      sums.push_back(put({inner, width}, random_floats(inner * width, 20 + e)));
    }
    device().ragged_gemm(routes, rows, weights, y, {.transpose_b = true});
    device().ragged_gemm(routes, y, weights, back, {.accumulate = true});
    const bool adds[] = {true, false, true, false, true};
    std::vector<Tensor> before;
    for (const Tensor& sum : sums) before.push_back(put(sum.shape(), get(sum)));
    device().ragged_gradients(routes, y, rows, {sums, adds}, Precision::f32);
    for (std::size_t e = 0; e < 5; ++e) {
      const std::int64_t begin = offsets[e], end = offsets[e + 1];
      const Floats w = get(weights[e]), got = get(y), again = get(back), old = get(before[e]);
      Doubles want(inner * width, 0.0);
      for (std::int64_t i = begin; i < end; ++i) {
        for (std::int64_t f = 0; f < inner; ++f) {
          double sum = 0;
          for (std::int64_t d = 0; d < width; ++d) {
            const auto at =
                static_cast<std::size_t>(of_rows[static_cast<std::size_t>(i)] * width + d);
            sum += static_cast<double>(x[at]) * w[static_cast<std::size_t>(f * width + d)];
            want[static_cast<std::size_t>(f * width + d)] +=
                static_cast<double>(got[static_cast<std::size_t>(i * inner + f)]) * x[at];
          }
          EXPECT_NEAR(got[static_cast<std::size_t>(i * inner + f)], sum, 1e-4);
        }
        for (std::int64_t d = 0; d < width; ++d) {
          double sum = 1;
          for (std::int64_t f = 0; f < inner; ++f)
            sum += static_cast<double>(got[static_cast<std::size_t>(i * inner + f)]) *
                   w[static_cast<std::size_t>(f * width + d)];
          EXPECT_NEAR(again[static_cast<std::size_t>(i * width + d)], sum, 1e-4);
        }
      }
      const Floats found = get(sums[e]);
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i], want[i] + (adds[e] ? static_cast<double>(old[i]) : 0), 1e-4);
    }
  }
}

TEST_P(Experts, CombinationsAddInTheOrderOfExperts) {
  const Router how{.experts = 6, .chosen = 3};
  constexpr std::int64_t tokens = 29, width = 19;
  const Routes routes = route(how, random_floats(tokens * 6, 3));
  const Rows places = integers(routes.places);
  const Floats weights = get(routes.weights), outputs = random_floats(tokens * 3 * width, 4),
               shared = random_floats(tokens * width, 5), gate = random_floats(tokens, 6);
  const Tensor all = put({tokens * 3, width}, outputs), other = put({tokens, width}, shared),
               logits = put({tokens, 1}, gate);
  Tensor y = device().empty({tokens, width}), sums = device().empty({tokens, width});
  device().combine({routes, all, &other, &logits}, y);
  device().permute_backward(all, routes, sums);
  const Floats got = get(y), added = get(sums);
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t d = 0; d < width; ++d) {
      float sum = 0, plain = 0;
      for (std::int64_t i = 3 * t; i < 3 * t + 3; ++i) {
        const float one =
            outputs[static_cast<std::size_t>(places[static_cast<std::size_t>(i)] * width + d)];
        sum += weights[static_cast<std::size_t>(i)] * one;
        plain += one;
      }
      const auto at = static_cast<std::size_t>(t * width + d);
      EXPECT_EQ(added[at], plain) << "in f32, in ascending order";
      EXPECT_NEAR(got[at], sum + shared[at] / (1 + std::exp(-gate[static_cast<std::size_t>(t)])),
                  1e-6);
    }
}

}  // namespace
}  // namespace troupe::engine::ops
