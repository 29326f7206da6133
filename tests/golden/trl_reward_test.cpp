// TRL's reward models, replayed (curve.h): RewardTrainer's outcome models and PRMTrainer's process models, whose score heads are given by
// a formula.
#include "algorithms/losses/orm_loss.h"
#include "algorithms/losses/prm_loss.h"
#include "tests/golden/scored.h"

namespace troupe::algorithms {
namespace {

class GoldenReward : public GoldenCurve {
 protected:
  GoldenReward() : GoldenCurve("trl/reward.json") {}
};

TEST_P(GoldenReward, EveryStepIsReproduced) {
  const Json* center = curve_->settings().find("center_rewards_coefficient");
  auto trained = curve_->trainer(with_score_head(*curve_->device, 1, false, 0.5));
  replay(trained, OrmLoss{.center = center ? center->number() : 0}, [](const Json& given) {
    const auto& ids = given.find("input_ids")->array();
    Experience b;
    for (std::size_t pair = 0; pair < ids.size() / 2; ++pair)
      for (const std::size_t row : {pair, pair + ids.size() / 2}) {
        const auto sequence = numbers<std::int32_t>(ids[row]);
        std::vector<float> mask(sequence.size(), 0.0f);
        mask.back() = 1;
        b.append(sequence, mask);
      }
    b.unit = 2, b.count = static_cast<double>(ids.size() / 2);
    return b;
  });
}

INSTANTIATE_TEST_SUITE_P(Trl, GoldenReward, ::testing::Values(Run{"BradleyTerry", "bradley_terry"}, Run{"Centred", "centred 0.01"}),
                         title_of);

class GoldenPrm : public GoldenCurve {
 protected:
  GoldenPrm() : GoldenCurve("trl/prm.json") {}
};

// Its cross-entropy as torch computes it: log-softmax and slopes in float32. Where a step is judged all but right, 1 - p loses its digits.
struct Float32Prm {
  static constexpr std::string_view name = "float32_prm";
  static void each_field(auto&, auto&&) {}
  engine::loss::Needs needs() const { return {.logp = false, .scores = true, .scores_at = engine::loss::ReadAt::token}; }
  engine::loss::Expr operator()(const engine::loss::TokenStats& now, const Experience& b, engine::loss::Report&) const {
    const auto wrong = now.scores[0].values(), right = now.scores[1].values();
    std::vector<double> slope_wrong(wrong.size(), 0), slope_right(wrong.size(), 0);
    const float share = 1.0f / static_cast<float>(b.count);
    double loss = 0;
    for (std::size_t t = 0; t < wrong.size(); ++t) {
      if (b.classes[t] < 0) continue;
      const float most = static_cast<float>(std::max(wrong[t], right[t]));
      const float x0 = static_cast<float>(wrong[t]) - most, x1 = static_cast<float>(right[t]) - most;
      const float normaliser = std::log(std::exp(x0) + std::exp(x1)), logp0 = x0 - normaliser, logp1 = x1 - normaliser;
      slope_wrong[t] = share * (std::exp(logp0) - (b.classes[t] == 0 ? 1.0f : 0.0f));
      slope_right[t] = share * (std::exp(logp1) - (b.classes[t] == 1 ? 1.0f : 0.0f));
      loss -= static_cast<double>(b.classes[t] == 1 ? logp1 : logp0) / b.count;
    }
    const auto linear = sum(now.scores[0] * engine::loss::Expr(slope_wrong)) + sum(now.scores[1] * engine::loss::Expr(slope_right));
    return linear - detach(linear) + loss;
  }
};

Experience steps_of(const Json& given) {
  Experience b;
  for (std::size_t n = 0; n < given.find("input_ids")->array().size(); ++n) {
    std::vector<float> mask;
    for (const auto label : numbers<std::int32_t>(given.find("labels")->array()[n])) {
      b.classes.push_back(label == -100 ? -1 : label);
      mask.push_back(label == -100 ? 0.0f : 1.0f);
      b.count += label != -100;
    }
    b.append(numbers<std::int32_t>(given.find("input_ids")->array()[n]), mask);
  }
  return b;
}

TEST_P(GoldenPrm, EveryStepIsReproduced) {
  auto trained = curve_->trainer(with_score_head(*curve_->device, 2, true, 0.5));
  replay(trained, PrmLoss{}, steps_of);
}

// PRMTrainer's losses were logged to four decimals. `last_step_only` has steps of loss 2e-6 and 6e-6, whose gradients TRL knows to three
// digits only, because its 1 - p is a difference of float32 numbers; what its optimizer makes of them shows up to the end. The test below
// replays that run within the bounds of all others, with TRL's arithmetic in the loss and double sums in the network.
constexpr Noise four_decimals{.loss = 1e-4}, saturated{.loss = 3e-4, .norm = 1.2e-3};

INSTANTIATE_TEST_SUITE_P(Trl, GoldenPrm,
                         ::testing::Values(Run{"TwoClass", "two_class", four_decimals}, Run{"LastStepOnly", "last_step_only", saturated}),
                         title_of);

class GoldenPrmInFloat32 : public GoldenPrm {};

TEST_P(GoldenPrmInFloat32, EveryStepIsReproduced) {
  curve_->device = engine::ops::make_reference_device();
  auto trained = curve_->trainer(with_score_head(*curve_->device, 2, true, 0.5));
  replay(trained, Float32Prm{}, steps_of);
}

INSTANTIATE_TEST_SUITE_P(Trl, GoldenPrmInFloat32, ::testing::Values(Run{"LastStepOnly", "last_step_only", four_decimals}), title_of);

TEST(GoldenTrlReward, SomeFilesAreThere) { test::expect_some_golden({"trl/reward.json", "trl/prm.json"}); }

}  // namespace
}  // namespace troupe::algorithms
