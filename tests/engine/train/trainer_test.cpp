// The trainer scores and trains on the tokens that the mask selects, and a gradient that is not
// finite changes nothing.
#include "engine/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "algorithms/losses/sft_loss.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/support/random_decoder.h"

namespace troupe::engine::train {
namespace {

/// A loss whose derivative is NaN.
struct BrokenLoss {
  static constexpr std::string_view name = "broken";
  static void each_field(auto&, auto&&) {}
  loss::Expr operator()(const loss::TokenStats& now, const data::Experience&, loss::Report&) const {
    return sum(now.logp * std::numeric_limits<double>::quiet_NaN());
  }
};

/// The same loss, whose gradient must not be computed beforehand.
struct SftInTwoSteps : algorithms::SftLoss {
  static loss::Needs needs() { return {.entropy = true}; }
};
struct SftInOneStep : algorithms::SftLoss {
  static loss::Needs needs() { return {.entropy = true, .grad_is_input_independent = true}; }
};

class OneTrainer : public testing::Test {
 protected:
  std::vector<float> weights() {
    return ops::to_host(*device_, trainer_.model().parameters().values());
  }
  std::vector<float> gradients() {
    return ops::to_host(*device_, trainer_.model().parameters().grads());
  }
  data::Experience batch(std::uint64_t seed = 3) {
    return test::random_batch(seed, 6, 12, trainer_.model().spec().vocabulary);
  }

  std::unique_ptr<ops::Device> device_ = ops::make_cpu_device({.threads = 1});
  Trainer trainer_{test::random_decoder(*device_, 5, true), {}};
};

TEST_F(OneTrainer, MaskedLogprobsAreThoseOfEveryTokenWhereTheMaskIs) {
  const data::Experience b = batch();
  const auto masked = trainer_.logprobs(b, 0.7);
  const auto every = logprobs(trainer_.model(), b, {.temperature = 0.7, .every_token = true});
  ASSERT_EQ(masked.size(), b.tokens.size());
  int zeros = 0;
  for (std::size_t t = 0; t < masked.size(); ++t) {
    EXPECT_EQ(masked[t], b.mask[t] == 0 ? 0.0f : every[t]) << "token " << t;
    zeros += every[t] == 0;
  }
  EXPECT_EQ(zeros, b.sequences()) << "only first tokens have no probability";
}

TEST_F(OneTrainer, ABatchThatTrainsNothingHasNoLossAndNoGradient) {
  data::Experience b = batch();
  std::ranges::fill(b.mask, 0.0f);
  b.count = 1;
  EXPECT_THAT(trainer_.logprobs(b, 1), testing::Each(0.0f));
  const BatchLoss found = trainer_.forward_backward(b, algorithms::SftLoss{});
  EXPECT_EQ(found.loss, 0);
  EXPECT_EQ(found.tokens, b.token_count());
  EXPECT_THAT(gradients(), testing::Each(0.0f));
}

TEST_F(OneTrainer, ABatchOfNothingIsNothing) {
  const data::Experience b;
  EXPECT_TRUE(trainer_.logprobs(b, 1).empty());
  EXPECT_EQ(trainer_.forward_backward(b, algorithms::SftLoss{}).tokens, 0);
}

TEST_F(OneTrainer, AGradientThatIsNotFiniteChangesNoWeightAndIsForgotten) {
  const auto before = weights();
  trainer_.forward_backward(batch(), BrokenLoss{});
  const auto refused = trainer_.update(1e-2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::bad_input);
  EXPECT_EQ(weights(), before);
  EXPECT_EQ(trainer_.version(), 0u);

  trainer_.forward_backward(batch(), algorithms::SftLoss{});
  ASSERT_TRUE(trainer_.update(1e-2));
  EXPECT_EQ(trainer_.version(), 1u);
  for (const float x : weights()) ASSERT_TRUE(std::isfinite(x));
  EXPECT_NE(weights(), before);
}

TEST_F(OneTrainer, GradientsKnownBeforehandGiveTheBitsOfGradientsFoundOut) {
  std::vector<std::vector<float>> found;
  std::vector<BatchLoss> losses;
  for (const loss::AnyLoss& loss :
       {loss::AnyLoss(SftInTwoSteps{}), loss::AnyLoss(SftInOneStep{})}) {
    device_->fill(trainer_.model().parameters().grads(), 0);
    losses.push_back(trainer_.forward_backward(batch(), loss));
    found.push_back(gradients());
  }
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(losses[0].loss, losses[1].loss);
  EXPECT_EQ(losses[0].report.to_json(), losses[1].report.to_json());
}

TEST_F(OneTrainer, GradientsOfTwoBatchesAddUpToThoseOfBoth) {
  data::Experience one = batch(3), two = batch(4), both = one;
  both.count = one.count = two.count = one.count + two.count;
  for (std::int32_t n = 0; n < two.sequences(); ++n) {
    const auto part = two.slice(n, n + 1);
    both.append(part.tokens, part.mask);
  }
  trainer_.forward_backward(one, algorithms::SftLoss{});
  trainer_.forward_backward(two, algorithms::SftLoss{});
  const auto sum = gradients();
  device_->fill(trainer_.model().parameters().grads(), 0);
  trainer_.forward_backward(both, algorithms::SftLoss{});
  const auto whole = gradients();
  const double size = std::sqrt(test::dot(whole, whole) / static_cast<double>(whole.size()));
  for (std::size_t i = 0; i < whole.size(); ++i)
    ASSERT_NEAR(sum[i], whole[i], 1e-5 * size + 1e-5 * std::abs(whole[i]));
}

}  // namespace
}  // namespace troupe::engine::train
