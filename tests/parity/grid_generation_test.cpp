// Generation by a group: the tokens of one rank, on every rank, with the log-probabilities that the
// same group's trainer gives them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>

#include "engine/generate/generator.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"
#include "tests/support/generate_all.h"
#include "tests/support/grid_decoder.h"

namespace troupe::test {
namespace {

using engine::generate::Generation;
using engine::train::Trainer;

struct TpCase {
  GridModel model;
  int tp;
};
std::string tp_name(const TpCase& which) {
  return cat(which.model.title, "Tp", which.tp);
}
void PrintTo(const TpCase& which, std::ostream* out) {
  *out << tp_name(which);
}

std::vector<engine::generate::Request> requests(std::int64_t vocabulary, bool greedy) {
  std::vector<engine::generate::Request> all;
  for (std::uint64_t i = 0; i < 12; ++i) {
    engine::generate::Request request;
    request.id = i;
    request.sample_id = i;
    for (std::uint64_t t = 0; t < 1 + uniform_below(20, 4, i / 4, 0); ++t)
      request.prompt.push_back(static_cast<std::int32_t>(
          uniform_below(static_cast<std::uint64_t>(vocabulary), 4, i / 4, t + 1)));
    request.params.greedy = greedy;
    request.params.temperature = 0.7;
    request.params.max_new_tokens = 15;
    request.params.seed = 9;
    request.params.top_logprobs = 3;
    // Sampling masks: the whole vocabulary, one token, and so few that parts of it have none.
    request.params.report_masks = true;
    if (!greedy) request.params.top_k = std::array{0, 1, 5}[i % 3];
    all.push_back(std::move(request));
  }
  return all;
}

std::vector<Generation> generate(const GridModel& model, const Mesh& mesh, bool greedy,
                                 engine::ops::Precision precision = engine::ops::Precision::f32) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  const auto decoder = grid_decoder(*device, model, 7, mesh, false);
  auto generator = value_or_throw(engine::generate::Generator::create(
      *decoder, {.pages = 20, .max_sequences = 5, .tokens_per_step = 30, .precision = precision}));
  return value_or_throw(test::generate_all(generator, requests(model.spec.vocabulary, greedy)));
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> out;
  for (const float x : values) out.push_back(std::bit_cast<std::uint32_t>(x));
  return out;
}

void expect_same_tokens(const std::vector<Generation>& a, const std::vector<Generation>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].ids, b[i].ids);
    EXPECT_EQ(a[i].masks, b[i].masks);
    EXPECT_THAT(a[i].logp, testing::Pointwise(testing::FloatNear(1e-5f), b[i].logp));
    EXPECT_THAT(a[i].sampling_logp,
                testing::Pointwise(testing::FloatNear(1e-5f), b[i].sampling_logp));
    ASSERT_EQ(a[i].top.size(), b[i].top.size());
    for (std::size_t t = 0; t < a[i].top.size(); ++t)
      for (std::size_t k = 0; k < 3; ++k) {
        EXPECT_EQ(a[i].top[t][k].id, b[i].top[t][k].id);
        EXPECT_NEAR(a[i].top[t][k].logp, b[i].top[t][k].logp, 1e-5);
      }
  }
}

class GridGeneration : public testing::TestWithParam<TpCase> {};

TEST_P(GridGeneration, EveryRankDrawsTheTokensOfOne) {
  const auto& [model, tp] = GetParam();
  for (const bool greedy : {true, false}) {
    const auto one = generate(model, Mesh(), greedy);
    for (const auto& rank :
         on_grid({1, tp}, [&](const Mesh& mesh) { return generate(model, mesh, greedy); }))
      expect_same_tokens(rank, one);
  }
}

/// The generated samples as a batch, and the log-probability of each token from the generator.
std::pair<engine::data::Experience, std::vector<float>> as_batch(
    const GridModel& model, const std::vector<Generation>& generations) {
  engine::data::Experience batch;
  std::vector<float> said;  // [T]
  for (const Generation& one : generations) {
    auto ids = requests(model.spec.vocabulary, false)[one.id].prompt;
    said.resize(said.size() + ids.size(), 0.0f);
    said.insert(said.end(), one.sampling_logp.begin(), one.sampling_logp.end());
    batch.sampling_mask.append_whole(ids.size());
    batch.sampling_mask.append(one.masks, 0, one.masks.size());
    std::vector<float> mask(ids.size(), 0.0f);
    ids.insert(ids.end(), one.ids.begin(), one.ids.end());
    mask.resize(ids.size(), 1.0f);
    batch.append(ids, mask);
  }
  return {std::move(batch), std::move(said)};
}

TEST_P(GridGeneration, ASampledTokensProbabilityHasTheBitsOfTheGroupsTrainer) {
  const auto& [model, tp] = GetParam();
  for (const auto precision : {engine::ops::Precision::f32, engine::ops::Precision::bf16}) {
    const auto ranks = on_grid({1, tp}, [&](const Mesh& mesh) {
      const auto [batch, said] = as_batch(model, generate(model, mesh, false, precision));
      const auto device = engine::ops::make_cpu_device({.threads = 1});
      Trainer trainer(grid_decoder(*device, model, 7, mesh, true),
                      {.dtype = precision, .micro_batch_tokens = 40}, &mesh);
      return std::pair(bits_of(trainer.logprobs(batch, 0.7)), bits_of(said));
    });
    for (const auto& [trained, said] : ranks) {
      EXPECT_GT(said.size(), 100u);
      EXPECT_GT(std::ranges::count(said, 0u), 50);  // of masks with one token
      EXPECT_EQ(trained, said);
    }
  }
}

std::vector<TpCase> tp_cases() {
  std::vector<TpCase> all;
  for (const auto& model : grid_models())
    for (int tp = 2; tp <= model.max_tp; tp *= 2) all.push_back({model, tp});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Grids, GridGeneration, testing::ValuesIn(tp_cases()),
                         [](const auto& each) { return tp_name(each.param); });

}  // namespace
}  // namespace troupe::test
