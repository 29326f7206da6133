// TRL's preference losses, replayed (curve.h).
#include "algorithms/losses/dpo_loss.h"
#include "tests/golden/curve.h"

namespace troupe::algorithms {
namespace {

// Three times the golden README's noise.
constexpr Noise discopop_noise{.loss = 6e-5, .norm = 9e-4};

class GoldenDpo : public GoldenCurve {
 protected:
  GoldenDpo() : GoldenCurve("trl/dpo.json") {}
};

// TRL's `sigmoid` leaves label_smoothing unused; ours refuses one that would be.
DpoLoss dpo_loss(const Json& settings) {
  const std::string& type = settings.find("loss_type")->array().at(0).string();
  const auto smoothing = type == "sigmoid" ? Json(0.0) : *settings.find("label_smoothing");
  const Json fields = Json::Object{
      {"kind", type}, {"beta", *settings.find("beta")}, {"label_smoothing", smoothing}, {"discopop_tau", *settings.find("discopop_tau")}};
  return value_or_throw(fields_from_json<DpoLoss>(fields, "golden"));
}

TEST_P(GoldenDpo, EveryStepIsReproduced) {
  const auto reference = value_or_throw(engine::checkpoint::load_decoder(*curve_->device, model_folder, false));
  replay(dpo_loss(curve_->settings()), [&](const Json& given) {
    const auto &ids = given.find("input_ids")->array(), &masks = given.find("completion_mask")->array();
    Experience b;
    b.unit = 2;
    for (std::size_t pair = 0; pair < ids.size() / 2; ++pair)
      for (const std::size_t row : {pair, pair + ids.size() / 2}) b.append(numbers<std::int32_t>(ids[row]), numbers<float>(masks[row]));
    b.count = static_cast<double>(ids.size() / 2);
    b.reference_logp = engine::train::logprobs(*reference, b, {});
    return b;
  });
}

INSTANTIATE_TEST_SUITE_P(Trl, GoldenDpo,
                         ::testing::Values(Run{"Sigmoid", "sigmoid"}, Run{"Hinge", "hinge"}, Run{"Ipo", "ipo"}, Run{"ExoPair", "exo_pair"},
                                           Run{"NcaPair", "nca_pair"}, Run{"Robust", "robust"}, Run{"BcoPair", "bco_pair"},
                                           Run{"SppoHard", "sppo_hard"}, Run{"ApoZero", "apo_zero"}, Run{"ApoDown", "apo_down"},
                                           Run{"Discopop", "discopop", discopop_noise}, Run{"SigmoidNorm", "sigmoid_norm"},
                                           Run{"LabelSmoothing", "sigmoid, beta 0.5, label_smoothing 0.1"}),
                         title_of);

TEST(GoldenPreference, SomeFilesAreThere) { test::expect_some_golden({"trl/dpo.json"}); }

}  // namespace
}  // namespace troupe::algorithms
