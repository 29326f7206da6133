// A batch's loss and gradient are those of its sequences: how they are cut into micro-batches, and
// in which order they are packed, is no part of the result.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "algorithms/losses/dpo_loss.h"
#include "algorithms/losses/grpo_loss.h"
#include "algorithms/losses/sft_loss.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"
#include "tests/support/random_decoder.h"

namespace troupe {
namespace {

using engine::data::Experience;

struct BatchResult {
  double loss = 0;
  std::vector<float> gradient;
  std::vector<float> logp;
};

struct BatchObjective {
  const char* title;
  engine::loss::AnyLoss loss;
  int unit;
};
void PrintTo(const BatchObjective& objective, std::ostream* out) {
  *out << objective.title;
}

class BatchParity : public testing::TestWithParam<BatchObjective> {
 protected:
  BatchResult measure(std::uint64_t seed, const Experience& batch, std::int32_t micro_batch_tokens,
                      int threads = 1) {
    const auto device = engine::ops::make_cpu_device({.threads = threads});
    engine::train::Trainer trainer(test::random_decoder(*device, seed, true),
                                   {.micro_batch_tokens = micro_batch_tokens});
    BatchResult found;
    found.logp = trainer.logprobs(batch, 1);
    found.loss = trainer.forward_backward(batch, GetParam().loss).loss;
    found.gradient = engine::ops::to_host(*device, trainer.model().parameters().grads());
    return found;
  }
  Experience batch(std::uint64_t seed) {
    return test::full_batch(seed, 10, GetParam().unit, test::random_spec(seed).vocabulary);
  }
  static void expect_near(const BatchResult& a, const BatchResult& b) {
    EXPECT_NEAR(a.loss, b.loss, 1e-6 * std::max(1.0, std::abs(b.loss)));
    ASSERT_EQ(a.gradient.size(), b.gradient.size());
    std::vector<float> difference;
    for (std::size_t i = 0; i < a.gradient.size(); ++i)
      difference.push_back(a.gradient[i] - b.gradient[i]);
    const double size = std::sqrt(test::dot(b.gradient, b.gradient));
    EXPECT_GT(size, 1e-3) << "this batch shows nothing";
    EXPECT_LT(std::sqrt(test::dot(difference, difference)), 1e-6 * size);
  }
};

TEST_P(BatchParity, TheSizeOfMicroBatchesChangesNoBit) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Experience b = batch(seed);
    const BatchResult whole = measure(seed, b, 1 << 20);
    for (const std::int32_t tokens : {1, 30, 70}) {
      const BatchResult parts = measure(seed, b, tokens);
      EXPECT_EQ(parts.logp, whole.logp) << "the numbers of a token never depend on its neighbours";
      EXPECT_EQ(parts.loss, whole.loss);
      EXPECT_EQ(parts.gradient, whole.gradient);
    }
  }
}

TEST_P(BatchParity, TheOrderOfSequencesChangesNothing) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Experience b = batch(seed);
    const int units = b.sequences() / b.sequences_per_group;
    std::vector<std::int32_t> order;
    for (int i = 0; i < units; ++i)
      for (int j = 0; j < b.sequences_per_group; ++j)
        order.push_back((i * 3 + 1) % units * b.sequences_per_group + j);
    expect_near(measure(seed, b.select(order), 60), measure(seed, b, 60));
  }
}

TEST_P(BatchParity, TwoThreadsGiveTheBitsOfOne) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Experience b = batch(seed);
    const BatchResult one = measure(seed, b, 60, 1), two = measure(seed, b, 60, 2);
    EXPECT_EQ(one.loss, two.loss);
    EXPECT_EQ(one.logp, two.logp);
    EXPECT_EQ(one.gradient, two.gradient);
  }
}

std::vector<BatchObjective> batch_objectives() {
  algorithms::GrpoLoss grpo;
  grpo.beta = 0.1;
  grpo.entropy_coef = 0.01;
  return {{"Sft", algorithms::SftLoss{}, 1}, {"Dpo", algorithms::DpoLoss{}, 2}, {"Grpo", grpo, 1}};
}
INSTANTIATE_TEST_SUITE_P(Losses, BatchParity, testing::ValuesIn(batch_objectives()),
                         [](const auto& each) { return each.param.title; });

}  // namespace
}  // namespace troupe
