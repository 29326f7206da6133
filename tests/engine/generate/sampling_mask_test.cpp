// Sampling masks: the tokens that were left to sample from, and log-probabilities over them, beside
// the sampler's own sets and float64 loops over them.
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/base/random/random.h"
#include "engine/generate/generator.h"
#include "engine/generate/sampler.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/ops/temperature.h"
#include "tests/engine/generate/tiny_model.h"
#include "tests/support/generate_all.h"

namespace troupe::engine::generate {
namespace {

struct Setting {
  const char* name;
  void (*change)(SamplingParams&);
};
void PrintTo(const Setting& setting, std::ostream* out) {
  *out << setting.name;
}

const Setting settings[] = {{"top_p", [](SamplingParams& p) { p.top_p = 0.8; }},
                            {"top_k", [](SamplingParams& p) { p.top_k = 20; }},
                            {"min_p", [](SamplingParams& p) { p.min_p = 0.1; }},
                            {"typical_p", [](SamplingParams& p) { p.typical_p = 0.9; }},
                            {"top_p_at_another_temperature",
                             [](SamplingParams& p) {
                               p.top_p = 0.8;
                               p.temperature = 0.7;
                             }},
                            {"all_of_them",
                             [](SamplingParams& p) {
                               p.top_p = 0.9;
                               p.top_k = 20;
                               p.min_p = 0.05;
                               p.typical_p = 0.95;
                               p.temperature = 0.7;
                             }},
                            {"bans",
                             [](SamplingParams& p) {
                               p.token_rules.suppress_tokens = {3, 4, 5};
                               p.min_new_tokens = 4;
                               p.no_repeat_ngram = 2;
                             }},
                            {"one_token", [](SamplingParams& p) { p.top_k = 1; }},
                            {"nothing", [](SamplingParams&) {}}};

class SamplingMasks : public testing::TestWithParam<Setting> {
 protected:
  std::vector<Request> requests() const {
    std::vector<Request> all;
    for (std::uint64_t i = 0; i < 24; ++i) {
      Request& r = all.emplace_back();
      r.id = i;
      r.sample_id = i;
      r.prompt = {static_cast<std::int32_t>(i % 5), 7, static_cast<std::int32_t>(i % 3)};
      r.params.max_new_tokens = 12;
      r.params.report_masks = true;
      GetParam().change(r.params);
    }
    return all;
  }

  std::vector<Generation> generated(const std::vector<Request>& requests,
                                    ops::Precision precision = ops::Precision::f32) {
    auto generator = value_or_throw(Generator::create(*model_, {.precision = precision}));
    return value_or_throw(test::generate_all(generator, requests));
  }

  std::unique_ptr<ops::Device> device_ = ops::make_cpu_device({.threads = 2});
  std::unique_ptr<models::Decoder> model_ = test::tiny_model(*device_);
};
INSTANTIATE_TEST_SUITE_P(Settings, SamplingMasks, testing::ValuesIn(settings),
                         [](const auto& each) { return std::string(each.param.name); });

/// log(p(token) / sum of p over the kept tokens), as loops over one row of logits.
double kept_logp(std::span<const float> row, const std::vector<std::int32_t>& kept,
                 std::int32_t token, double temperature) {
  double sum = 0;
  for (const std::int32_t id : kept)
    sum += std::exp(
        (double{row[static_cast<std::size_t>(id)]} - double{row[static_cast<std::size_t>(token)]}) /
        temperature);
  return -std::log(sum);
}

TEST_P(SamplingMasks, AreTheSamplersAndGiveTheLogprobsOverThem) {
  for (const ops::Precision precision : {ops::Precision::f32, ops::Precision::bf16}) {
    std::size_t masked = 0;
    for (const Request& request : requests()) {
      const Generation got = generated({request}, precision)[0];
      ASSERT_EQ(got.masks.size(), got.ids.size());
      std::vector<std::int32_t> all = request.prompt;
      all.insert(all.end(), got.ids.begin(), got.ids.end());
      const std::vector<float> logits = ops::to_host(
          *device_, model_->head().logits(test::full_forward(*model_, all, precision), precision));
      IdSets masks;
      masks.append_whole(request.prompt.size());
      masks.append(got.masks, 0, got.masks.size());
      const float inverse = ops::inverse_temperature(request.params.temperature);
      const std::vector<float> trainer =
          test::trainer_logp(*model_, all, inverse, precision, &masks);
      for (std::size_t i = 0; i < got.ids.size(); ++i) {
        const std::size_t at = request.prompt.size() + i;
        const std::span<const float> row(logits.data() + (at - 1) * 37, 37);
        const ProcessorContext context{request.params,
                                       std::span(all).first(at),
                                       request.prompt.size(),
                                       {},
                                       request.prompt.size() + 12};
        const std::vector<std::int32_t> kept = apply_processors(row, context).kept;
        EXPECT_EQ(got.masks[i], kept.size() == 37 ? "" : encode_id_set(kept, 37));
        EXPECT_NEAR(double{got.sampling_logp[i]},
                    kept_logp(row, kept, got.ids[i], request.params.temperature), 1e-5);
        EXPECT_EQ(std::bit_cast<std::uint32_t>(got.sampling_logp[i]),
                  std::bit_cast<std::uint32_t>(trainer[at]));
        if (kept.size() == 1) {
          EXPECT_EQ(got.sampling_logp[i], 0);
        }
        masked += kept.size() < 37 ? 1 : 0;
      }
    }
    EXPECT_EQ(masked > 0, std::string_view(GetParam().name) != "nothing");
  }
}

TEST_P(SamplingMasks, ChangeNoTokenAndNoLogprobOfTheWholeVocabulary) {
  auto plain = requests();
  for (Request& request : plain) request.params.report_masks = false;
  const auto with = generated(requests()), without = generated(plain);
  for (std::size_t i = 0; i < with.size(); ++i) {
    EXPECT_EQ(with[i].ids, without[i].ids);
    EXPECT_EQ(with[i].logp, without[i].logp);
    EXPECT_TRUE(without[i].masks.empty());
    if (std::string_view(GetParam().name) == "nothing") {
      EXPECT_TRUE(with[i].masks.all_whole());
      EXPECT_EQ(with[i].sampling_logp, without[i].sampling_logp);
    }
  }
}

// 10^5 samples of one row against exp(log-probability): Pearson's statistic stays below the 0.9999
// quantile of its distribution, and is far beyond it with the probabilities of the whole
// vocabulary.
TEST(SampledFrequencies, AgreeWithTheRecordedProbabilities) {
  constexpr std::size_t draws = 100000, vocabulary = 37;
  std::vector<float> row(vocabulary);
  for (std::size_t v = 0; v < vocabulary; ++v) row[v] = static_cast<float>(3 * uniform(5, 6, v));
  SamplingParams params;
  params.top_p = 0.8;
  const std::vector<std::int32_t> before = {1};
  std::vector<double> counts(vocabulary);
  std::vector<std::int32_t> kept;
  const ProcessorContext context{params, before, 1, {}};
  for (std::uint64_t i = 0; i < draws; ++i)
    ++counts[static_cast<std::size_t>(sample_token(row, context, sampling_row(context, i), &kept))];
  std::vector<std::int32_t> all(vocabulary);
  for (std::size_t v = 0; v < vocabulary; ++v) all[v] = static_cast<std::int32_t>(v);
  const auto statistic = [&](const std::vector<std::int32_t>& over) {
    double sum = 0;
    for (const std::int32_t id : kept) {
      const double expected = draws * std::exp(kept_logp(row, over, id, 1));
      const double off = counts[static_cast<std::size_t>(id)] - expected;
      sum += off * off / expected;
    }
    return sum;
  };
  ASSERT_GT(kept.size(), 10u);
  ASSERT_LT(kept.size(), 36u);
  EXPECT_LT(statistic(kept), 80);  // at most 36 degrees of freedom
  EXPECT_GT(statistic(all), 1000);
}

}  // namespace
}  // namespace troupe::engine::generate
