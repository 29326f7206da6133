// Sequences with shared prefixes: common rows are computed once, with equal log-probabilities and
// equal gradients up to the order of summation, for every family, precision, device and
// recomputation.
#include "engine/train/micro_batch_pass.h"

#include <gtest/gtest.h>

#include "algorithms/losses/sft_loss.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"
#include "tests/support/grid_decoder.h"

namespace troupe::engine::train {
namespace {

using Tokens = std::vector<std::int32_t>;

data::Experience batch_of(const std::vector<Tokens>& sequences) {
  data::Experience batch;
  for (const Tokens& ids : sequences) {
    std::vector<float> mask(ids.size(), 1.0f);
    mask[0] = 0;
    batch.append(ids, mask);
  }
  batch.count = batch.token_count() - batch.sequences();
  return batch;
}

// Samples of two prompts; one sample is a prefix of another, two are equal, and one begins like an
// earlier one.
data::Experience samples() {
  return batch_of({{5, 6, 7, 8, 9, 1, 2},
                   {5, 6, 7, 8, 9, 3},
                   {5, 6, 7, 8},
                   {5, 6, 7, 8, 9, 4, 4, 4},
                   {11, 12, 13, 1, 1},
                   {11, 12, 13, 1, 1},
                   {5, 6, 2}});
}

models::DecoderSpec plain() {
  return test::grid_models().front().spec;
}

TEST(SharedPrefixes, EachRowIsThatOfTheFirstSequenceThatHasIt) {
  const auto rows =
      shared_prefixes(batch_of({{1, 2, 3, 4}, {1, 2, 5}, {1, 2, 5, 6}, {7, 2}}), plain());
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->inverse.host, (Tokens{0, 1, 2, 3, 0, 1, 4, 0, 1, 4, 5, 6, 7}));
  EXPECT_EQ(rows->index.host, (Tokens{0, 1, 2, 3, 6, 10, 11, 12}));
}

TEST(SharedPrefixes, AreLeftWhereLittleIsSavedOrLengthsMatter) {
  const Tokens first{1, 2, 3, 4, 5, 6, 7, 8}, second{1, 3, 3, 4, 5, 6, 7, 8},
      third{1, 3, 3, 4, 5, 6, 7, 9};
  EXPECT_FALSE(shared_prefixes(batch_of({first, second}), plain()));
  EXPECT_FALSE(shared_prefixes({}, plain()));
  EXPECT_TRUE(shared_prefixes(batch_of({first, second, third}), plain()));
  models::DecoderSpec grows = plain();
  grows.rotary[0].original_length = 4;
  grows.rotary[0].ntk_factor = 2;
  EXPECT_FALSE(shared_prefixes(batch_of({first, second, third}), grows));
}

class SharedPrefixesOf : public testing::TestWithParam<test::GridModel> {
 protected:
  std::unique_ptr<models::Decoder> model(ops::Device& device) const {
    auto made = std::make_unique<models::Decoder>(device, GetParam().spec, true);
    test::randomize(made->parameters(), 4, 0.5);
    return made;
  }
  struct StepResult {
    double loss;
    std::vector<float> gradient;
  };
  StepResult found(ops::Device& device, const TrainerOptions& options) const {
    Trainer trainer(model(device), options);
    const double loss = trainer.forward_backward(samples(), algorithms::SftLoss{}).loss;
    return {loss, ops::to_host(device, trainer.model().parameters().grads())};
  }
};

INSTANTIATE_TEST_SUITE_P(Families, SharedPrefixesOf, testing::ValuesIn(test::grid_models()),
                         [](const auto& each) { return each.param.title; });
INSTANTIATE_TEST_SUITE_P(Mixtures, SharedPrefixesOf, testing::Values(test::mixture_model()),
                         [](const auto& each) { return each.param.title; });

double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, whole = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double{a[i]} - double{b[i]}, 2);
    whole += double{b[i]} * double{b[i]};
  }
  return std::sqrt(difference / whole);
}

TEST_P(SharedPrefixesOf, ScoresHaveTheBitsOfEachSequenceAlone) {
  const auto reference = ops::make_reference_device(), cpu = ops::make_cpu_device({.threads = 2});
  for (ops::Device* device : {reference.get(), cpu.get()})
    for (const auto precision : {ops::Precision::f32, ops::Precision::bf16}) {
      const auto decoder = model(*device);
      EXPECT_TRUE(shared_prefixes(samples(), GetParam().spec));
      EXPECT_EQ(logprobs(*decoder, samples(), {.precision = precision}),
                logprobs(*decoder, samples(), {.precision = precision, .micro_batch_tokens = 1}));
    }
}

TEST_P(SharedPrefixesOf, TheLossHasTheBitsAndTheGradientIsTheSameSum) {
  const auto reference = ops::make_reference_device(), cpu = ops::make_cpu_device({.threads = 2});
  for (ops::Device* device : {reference.get(), cpu.get()})
    for (const auto precision : {ops::Precision::f32, ops::Precision::bf16}) {
      const StepResult separate = found(*device, {.dtype = precision});
      const StepResult shared = found(*device, {.dtype = precision, .share_prefixes = true});
      EXPECT_EQ(shared.loss, separate.loss);
      EXPECT_NE(shared.gradient, separate.gradient) << "nothing was shared";
      // bf16 rounds a sum of gradients once, where it rounded each
      EXPECT_LT(relative_distance(shared.gradient, separate.gradient),
                precision == ops::Precision::f32 ? 1e-6 : 1e-2);
    }
}

TEST_P(SharedPrefixesOf, WhatIsComputedAgainChangesNoBit) {
  const auto device = ops::make_cpu_device({.threads = 2});
  const auto of = [&](const nn::Recomputed& recomputed) {
    return found(*device, {.recomputed = recomputed, .share_prefixes = true}).gradient;
  };
  const auto kept = of({});
  EXPECT_EQ(of({.kinds = {nn::Recompute::full}}), kept);
  EXPECT_EQ(
      of({.kinds = {nn::Recompute::attention, nn::Recompute::activation, nn::Recompute::norm}}),
      kept);
}

TEST_P(SharedPrefixesOf, RanksThatShareTheModelShareTheRows) {
  const auto ranks = test::on_grid({.dp = 1, .tp = 2}, [&](const parallel::Mesh& mesh) {
    const auto device = ops::make_cpu_device({.threads = 1});
    const auto run = [&](bool share_prefixes) {
      Trainer trainer(test::grid_decoder(*device, GetParam(), 4, mesh, true),
                      {.share_prefixes = share_prefixes}, &mesh);
      const double loss = trainer.forward_backward(samples(), algorithms::SftLoss{}).loss;
      return StepResult{loss, ops::to_host(*device, trainer.model().parameters().grads())};
    };
    return std::pair(run(false), run(true));
  });
  for (const auto& [separate, shared] : ranks) {
    EXPECT_EQ(shared.loss, separate.loss);
    EXPECT_LT(relative_distance(shared.gradient, separate.gradient), 1e-6);
  }
}

}  // namespace
}  // namespace troupe::engine::train
