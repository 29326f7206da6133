// Device::sample with the host's sampler: tokens, scores and kept sets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string>

#include "engine/base/errors/check.h"
#include "engine/base/random/random.h"
#include "engine/base/text/text.h"
#include "engine/generate/sampler.h"
#include "engine/ops/cpu/cpu_options.h"

namespace troupe::engine::generate {
namespace {

using Ids = std::vector<std::int32_t>;
constexpr std::size_t rows = 6, vocabulary = 131;

/// Rows of one request each, with the samples 0, 1, ...
class Requests final : public ops::HostSampler {
 public:
  explicit Requests(SamplingParams params) : params_(std::move(params)) {
    for (std::uint64_t i = 0; i < rows; ++i) rows_.push_back(sampling_row(context(), i));
  }
  ProcessorContext context() const { return {params_, tokens_, 1, {}}; }
  ops::SamplingRows all() const { return {rows_, *this}; }
  const ops::SamplingRow& row(std::size_t i) const { return rows_[i]; }
  const SamplingParams& params() const { return params_; }

  std::int32_t sample(std::int64_t row, std::span<const float> logits, Ids* kept) const override {
    if (row >= fails_from) throw Failure(Error{Errc::bad_input, cat("row ", row)});
    return sample_token(logits, context(), rows_[static_cast<std::size_t>(row)], kept);
  }
  std::int64_t fails_from = rows;

 private:
  SamplingParams params_;
  Ids tokens_{3, 5};
  std::vector<ops::SamplingRow> rows_;
};

std::vector<float> some_logits() {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(rows * vocabulary);
  for (float& x : logits) x = normal(random);
  return logits;
}

/// Ids and their probabilities in f64, the most likely first; all logits differ.
struct Ranked {
  Ids ids;
  std::vector<double> p;

  Ranked(std::span<const float> logits, double temperature, const Ids& banned) {
    for (std::int32_t id = 0; id < std::ssize(logits); ++id)
      if (std::ranges::find(banned, id) == banned.end()) ids.push_back(id);
    std::ranges::sort(ids, std::greater<>(), [&](std::int32_t id) { return logits[id]; });
    double sum = 0;
    for (const auto id : ids)
      sum += p.emplace_back(std::exp((double{logits[id]} - logits[ids[0]]) / temperature));
    for (double& x : p) x /= sum;
  }
  double entropy() const {
    return std::transform_reduce(p.begin(), p.end(), 0.0, std::plus<>(),
                                 [](double x) { return -x * std::log(x); });
  }
  /// The first `count` ids, ascending.
  Ids first(std::size_t count) const {
    Ids some(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count));
    std::ranges::sort(some);
    return some;
  }
  Ids at_least(double minimum) const {
    std::size_t count = 1;
    while (count < p.size() && p[count] >= minimum) ++count;
    return first(count);
  }
};

struct Filter {
  std::string name;
  std::function<void(SamplingParams&)> set;
  std::function<Ids(const Ranked&)> kept;  ///< by its definition
};

std::size_t until_mass(const std::vector<double>& weights, double wanted) {
  std::size_t count = 0;
  for (double mass = 0; count < weights.size() && mass < wanted; ++count) mass += weights[count];
  return std::max<std::size_t>(count, 1);
}

Ids typical(const Ranked& all, double wanted) {
  const double entropy = all.entropy();
  std::vector<std::size_t> order(all.ids.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](std::size_t i) { return std::abs(-std::log(all.p[i]) - entropy); });
  std::vector<double> weights;
  for (const auto i : order) weights.push_back(all.p[i]);
  Ids kept;
  for (std::size_t n = 0; n < until_mass(weights, wanted); ++n) kept.push_back(all.ids[order[n]]);
  std::ranges::sort(kept);
  return kept;
}

// The most likely of the first 100 up to this fraction of their entropy.
Ids top_h(const Ranked& all, double fraction) {
  std::vector<double> p(all.p.begin(), all.p.begin() + 100), terms;
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (const double x : p) terms.push_back(-(x / sum) * std::log(x / sum));
  const double wanted = fraction * std::accumulate(terms.begin(), terms.end(), 0.0);
  std::size_t count = 1;
  for (double reached = terms[0]; count < terms.size(); ++count)
    if ((reached += terms[count]) > wanted) break;
  return all.first(count);
}

std::vector<Filter> filters_of_the_test() {
  return {
      {"nothing", [](auto&) {}, [](const Ranked&) { return Ids(); }},
      {"temperature", [](auto& p) { p.temperature = 0.7; }, [](const Ranked&) { return Ids(); }},
      {"top_k", [](auto& p) { p.top_k = 9; }, [](const Ranked& all) { return all.first(9); }},
      {"top_p", [](auto& p) { p.top_p = 0.8; },
       [](const Ranked& all) { return all.first(until_mass(all.p, 0.8)); }},
      {"min_p", [](auto& p) { p.min_p = 0.05; },
       [](const Ranked& all) { return all.at_least(0.05 * all.p[0]); }},
      {"typical_p", [](auto& p) { p.typical_p = 0.6; },
       [](const Ranked& all) { return typical(all, 0.6); }},
      {"epsilon_cutoff", [](auto& p) { p.epsilon_cutoff = 0.01; },
       [](const Ranked& all) { return all.at_least(0.01); }},
      {"eta_cutoff", [](auto& p) { p.eta_cutoff = 0.02; },
       [](const Ranked& all) {
         return all.at_least(std::min(0.02, std::sqrt(0.02) * std::exp(-all.entropy())));
       }},
      {"top_h", [](auto& p) { p.top_h = 0.5; }, [](const Ranked& all) { return top_h(all, 0.5); }},
      {"suppressed",
       [](auto& p) {
         p.token_rules.suppress_tokens = {4, 8, 130};
       },
       [](const Ranked& all) { return all.first(all.ids.size()); }},
      {"suppressed, temperature and top_k",
       [](auto& p) {
         p.token_rules.suppress_tokens = {4, 8, 130};
         p.temperature = 1.3;
         p.top_k = 20;
       },
       [](const Ranked& all) { return all.first(20); }},
      {"greedy", [](auto& p) { p.greedy = true; }, [](const Ranked&) { return Ids(); }},
      {"greedy, suppressed",
       [](auto& p) {
         p.greedy = true;
         p.token_rules.suppress_tokens = {0};
         p.top_k = 3;  // ignored
       },
       [](const Ranked& all) { return all.first(all.ids.size()); }},
  };
}

class SampleOf : public testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<ops::Device> device_ =
      GetParam() ? ops::make_cpu_device({.threads = 2}) : ops::make_reference_device();
  std::vector<float> host_ = some_logits();
  Tensor logits_ = ops::from_host(*device_, {rows, vocabulary}, host_);

  std::span<const float> row(std::size_t i) const {
    return std::span(host_).subspan(i * vocabulary, vocabulary);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, SampleOf, testing::Bool());

TEST_P(SampleOf, KeptSetsAreThoseOfThePlainDefinitions) {
  for (const Filter& filter : filters_of_the_test()) {
    SCOPED_TRACE(filter.name);
    SamplingParams params;
    params.seed = 11;
    filter.set(params);
    const Requests requests(params);
    Ids ids;
    ops::KeptTokens kept;
    device_->sample(logits_, requests.all(), {ids, nullptr, nullptr, &kept});
    ASSERT_EQ(kept.offsets.size(), rows + 1);
    ASSERT_EQ(kept.offsets.back(), std::ssize(kept.ids));
    for (std::size_t i = 0; i < rows; ++i) {
      const Ranked all(row(i), params.temperature, params.token_rules.suppress_tokens);
      const Ids expected = filter.kept(all);
      EXPECT_EQ(Ids(kept.ids.begin() + kept.offsets[i], kept.ids.begin() + kept.offsets[i + 1]),
                expected);
      if (!expected.empty()) {
        EXPECT_TRUE(std::ranges::binary_search(expected, ids[i]));
      }
    }
  }
}

// The token at quantile u of the kept tokens' renormalized probabilities.
std::int32_t drawn(const Ranked& all, Ids kept, double u) {
  if (kept.empty()) kept = all.first(all.ids.size());
  const auto weight = [&](std::int32_t id) {
    return all.p[static_cast<std::size_t>(std::ranges::find(all.ids, id) - all.ids.begin())];
  };
  double total = 0, sum = 0;
  for (const auto id : kept) total += weight(id);
  for (const auto id : kept)
    if ((sum += weight(id)) > u * total) return id;
  return kept.back();
}

TEST_P(SampleOf, TokensAreThoseAtTheQuantilesAndScoresHaveTheBitsOfTokenLogprob) {
  for (const Filter& filter : filters_of_the_test()) {
    SCOPED_TRACE(filter.name);
    SamplingParams params;
    params.seed = 12;
    filter.set(params);
    const Requests requests(params);
    Ids ids;
    Tensor logp = device_->empty({rows}), lse = device_->empty({rows});
    device_->sample(logits_, requests.all(), {ids, &logp, &lse});
    for (std::size_t i = 0; i < rows; ++i) {
      const Ranked all(row(i), params.temperature, params.token_rules.suppress_tokens);
      const double u = uniform(params.seed, i, 2);
      EXPECT_EQ(ids[i], params.greedy ? all.ids[0] : drawn(all, filter.kept(all), u));
    }
    Tensor expected = device_->empty({rows}), expected_lse = device_->empty({rows});
    device_->token_logprob(logits_, device_->indices(ids), 1, expected, expected_lse);
    const auto bits = [&](const Tensor& x) {
      std::vector<std::uint32_t> all;
      for (const float value : ops::to_host(*device_, x))
        all.push_back(std::bit_cast<std::uint32_t>(value));
      return all;
    };
    EXPECT_EQ(bits(logp), bits(expected));
    EXPECT_EQ(bits(lse), bits(expected_lse));
  }
}

TEST_P(SampleOf, TheFirstRowThatFailsIsReported) {
  Requests requests({});
  requests.fails_from = 2;
  Ids ids;
  try {
    device_->sample(logits_, requests.all(), {ids});
    FAIL() << "nothing was thrown";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().what, "row 2");
  }
}

TEST_P(SampleOf, OperandsThatDoNotFitAreABug) {
  const Requests requests({});
  Ids ids;
  Tensor logp = device_->empty({rows}), few = device_->empty({rows - 1});
  const Tensor half = logits_.rows(0, 3);
  EXPECT_THROW(device_->sample(half, requests.all(), {ids}), Bug);
  EXPECT_THROW(device_->sample(logits_, requests.all(), {ids, &logp}), Bug);
  EXPECT_THROW(device_->sample(logits_, requests.all(), {ids, &logp, &few}), Bug);
}

}  // namespace
}  // namespace troupe::engine::generate
