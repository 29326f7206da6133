// TRL's preference losses, replayed (curve.h).
#include "algorithms/losses/cpo_loss.h"
#include "algorithms/losses/dpo_loss.h"
#include "algorithms/losses/kto_loss.h"
#include "algorithms/losses/orpo_loss.h"
#include "algorithms/losses/simpo_loss.h"
#include "engine/nn/parameters.h"
#include "tests/golden/curve.h"

namespace troupe::algorithms {
namespace {

// Bounds for losses with more float32 noise in TRL itself (the golden README's figures): three
// times that noise.
constexpr Noise discopop_noise{.loss = 6e-5, .norm = 9e-4}, sppo_noise{.loss = 3e-5},
    alpha_noise{.loss = 1.2e-4}, forward_noise{.loss = 3e-4};

using Ids = std::vector<std::int32_t>;

// The sequences of a golden list, with their masks.
void append_row(Experience& b, const Json& ids, const Json& mask) {
  b.append(numbers<std::int32_t>(ids), numbers<float>(mask));
}

std::vector<float> trained(const Json& labels) {
  std::vector<float> mask;
  for (const auto label : numbers<std::int32_t>(labels))
    mask.push_back(label == -100 ? 0.0f : 1.0f);
  return mask;
}

class GoldenDpo : public GoldenCurve {
 protected:
  GoldenDpo() : GoldenCurve("trl/dpo.json") {}
};

// TRL's `sigmoid` ignores label_smoothing; troupe rejects unused smoothing.
DpoLoss dpo_loss(const Json& settings) {
  const auto& types = settings.find("loss_type")->array();
  const bool unused = types.size() == 1 && types[0].string() == "sigmoid";
  Json fields =
      Json::Object{{"loss", types},
                   {"beta", *settings.find("beta")},
                   {"label_smoothing", unused ? Json(0.0) : *settings.find("label_smoothing")},
                   {"divergence", *settings.find("f_divergence_type")},
                   {"divergence_alpha", *settings.find("f_alpha_divergence_coef")},
                   {"weighting", *settings.find("use_weighting")},
                   {"discopop_tau", *settings.find("discopop_tau")}};
  if (settings.find("loss_weights")) fields.set("loss_weights", *settings.find("loss_weights"));
  if (settings.find("ld_alpha")) fields.set("ld_alpha", *settings.find("ld_alpha"));
  const auto loss = value_or_throw(fields_from_json<DpoLoss>(fields, "golden"));
  value_or_throw(loss.validate());
  return loss;
}

TEST_P(GoldenDpo, EveryStepIsReproduced) {
  const Json& settings = curve_->settings();
  const auto reference =
      value_or_throw(engine::checkpoint::load_decoder(*curve_->device, model_folder, false));
  auto policy = curve_->trainer();
  std::int64_t step = 0;
  replay(policy, dpo_loss(settings), [&](const Json& given) {
    if (settings.find("sync_ref_model")->boolean() && step > 0 &&
        step % settings.find("ref_model_sync_steps")->integer() == 0)
      engine::nn::lerp(policy.model().parameters(),
                       settings.find("ref_model_mixup_alpha")->number(), reference->parameters());
    ++step;
    const auto &ids = given.find("input_ids")->array(),
               &masks = given.find("completion_mask")->array();
    Experience b;
    b.sequences_per_group = 2;
    for (std::size_t pair = 0; pair < ids.size() / 2; ++pair)
      for (const std::size_t row : {pair, pair + ids.size() / 2})
        append_row(b, ids[row], masks[row]);
    b.count = static_cast<double>(ids.size() / 2);
    set_nll_tokens(b);
    b.reference_logp = engine::train::logprobs(*reference, b, {});
    return b;
  });
}

INSTANTIATE_TEST_SUITE_P(
    Trl, GoldenDpo,
    ::testing::Values(Run{"Sigmoid", "sigmoid"}, Run{"Hinge", "hinge"}, Run{"Ipo", "ipo"},
                      Run{"ExoPair", "exo_pair"}, Run{"NcaPair", "nca_pair"},
                      Run{"Robust", "robust"}, Run{"BcoPair", "bco_pair"},
                      Run{"SppoHard", "sppo_hard", sppo_noise}, Run{"Aot", "aot"},
                      Run{"AotUnpaired", "aot_unpaired"}, Run{"ApoZero", "apo_zero"},
                      Run{"ApoDown", "apo_down"}, Run{"Discopop", "discopop", discopop_noise},
                      Run{"Sft", "sft"}, Run{"SigmoidNorm", "sigmoid_norm"},
                      Run{"LabelSmoothing", "sigmoid, beta 0.5, label_smoothing 0.1"},
                      Run{"Mpo", "mpo: sigmoid 0.8 + bco_pair 0.2 + sft 1.0"},
                      Run{"Rpo", "rpo: sigmoid + 0.5 sft"}, Run{"Wpo", "wpo"},
                      Run{"LengthDesensitized", "ld_alpha 0.5"},
                      Run{"ForwardKl", "f-dpo forward_kl", forward_noise},
                      Run{"JsDivergence", "f-dpo js_divergence"},
                      Run{"AlphaDivergence", "f-dpo alpha_divergence", alpha_noise},
                      Run{"MovingReference", "sync_ref_model every 2, mixup 0.6"}),
    title_of);

// Rows of CPO, SimPO and ORPO. `prompts_too`: the mask also selects the chosen sequences' prompts;
// the column `answer` selects the answers.
Experience labelled_pairs(const Json& given, bool prompts_too) {
  Experience b;
  b.sequences_per_group = 2;
  const std::size_t pairs = given.find("chosen_input_ids")->array().size();
  for (std::size_t pair = 0; pair < pairs; ++pair)
    for (const std::string side : {"chosen", "rejected"}) {
      const auto ids = numbers<std::int32_t>(given.find(side + "_input_ids")->array()[pair]);
      const auto answer = trained(given.find(side + "_labels")->array()[pair]);
      b.append(ids, prompts_too && side == "chosen" ? std::vector<float>(ids.size(), 1) : answer);
      if (prompts_too) b.answer.insert(b.answer.end(), answer.begin(), answer.end());
    }
  b.count = static_cast<double>(pairs);
  set_nll_tokens(b);
  return b;
}

class GoldenSimpo : public GoldenCurve {
 protected:
  GoldenSimpo() : GoldenCurve("trl/simpo.json") {}
};

AnyLoss cpo_or_simpo(const Json& settings) {
  const double beta = settings.find("beta")->number();
  Json fields = Json::Object{{"beta", beta},
                             {"label_smoothing", *settings.find("label_smoothing")},
                             {"alpha", *settings.find("alpha")},
                             {"nll_weight", *settings.find("cpo_alpha")}};
  const std::string& type = settings.find("loss_type")->string();
  if (type != "simpo")
    return value_or_throw(fields_from_json<CpoLoss>(fields.set("loss", type), "golden"));
  return value_or_throw(fields_from_json<SimpoLoss>(
      fields.set("gamma_beta_ratio", settings.find("simpo_gamma")->number() / beta), "golden"));
}

TEST_P(GoldenSimpo, EveryStepIsReproduced) {
  replay(cpo_or_simpo(curve_->settings()),
         [](const Json& given) { return labelled_pairs(given, false); });
}

INSTANTIATE_TEST_SUITE_P(Trl, GoldenSimpo,
                         ::testing::Values(Run{"Simpo", "simpo"},
                                           Run{"SimpoOtherMargin", "simpo, beta 2.5, gamma 0.5"},
                                           Run{"CpoSimpo", "cpo-simpo"},
                                           Run{"SimpoSmoothed", "simpo, label_smoothing 0.1"},
                                           Run{"CpoSigmoid", "cpo sigmoid"},
                                           Run{"CpoHinge", "cpo hinge"}, Run{"CpoIpo", "cpo ipo"}),
                         title_of);

class GoldenOrpo : public GoldenCurve {
 protected:
  GoldenOrpo() : GoldenCurve("trl/orpo.json") {}
};

TEST_P(GoldenOrpo, EveryStepIsReproduced) {
  replay(OrpoLoss{.beta = curve_->settings().find("beta")->number()},
         [](const Json& given) { return labelled_pairs(given, true); });
}

INSTANTIATE_TEST_SUITE_P(Trl, GoldenOrpo,
                         ::testing::Values(Run{"Beta01", "beta 0.1"}, Run{"Beta025", "beta 0.25"}),
                         title_of);

class GoldenKto : public GoldenCurve {
 protected:
  GoldenKto() : GoldenCurve("trl/kto.json") {}
};

KtoLoss kto_loss(const Json& settings) {
  const Json fields = Json::Object{{"loss", *settings.find("loss_type")},
                                   {"beta", *settings.find("beta")},
                                   {"desirable_weight", *settings.find("desirable_weight")},
                                   {"undesirable_weight", *settings.find("undesirable_weight")}};
  return value_or_throw(fields_from_json<KtoLoss>(fields, "golden"));
}

Experience rows(const Json& given, const char* ids, const char* masks) {
  Experience b;
  if (given.find(ids) == nullptr) return b;
  for (std::size_t n = 0; n < given.find(ids)->array().size(); ++n)
    append_row(b, given.find(ids)->array()[n], given.find(masks)->array()[n]);
  return b;
}

TEST_P(GoldenKto, EveryStepIsReproduced) {
  const auto reference =
      value_or_throw(engine::checkpoint::load_decoder(*curve_->device, model_folder, false));
  auto policy = curve_->trainer();
  replay(policy, kto_loss(curve_->settings()), [&](const Json& given) {
    const Experience mismatched = rows(given, "KL_input_ids", "KL_completion_mask");
    Experience b = rows(given, "input_ids", "completion_mask");
    for (const auto& label : given.find("label")->array())
      b.label.push_back(label.boolean() ? 1.0f : 0.0f);
    b.count = b.sequences();
    b.reference_logp = engine::train::logprobs(*reference, b, {});
    b.scale = mismatched_kl(mismatched, policy.logprobs(mismatched, 1),
                            engine::train::logprobs(*reference, mismatched, {}));
    return b;
  });
}

INSTANTIATE_TEST_SUITE_P(Trl, GoldenKto,
                         ::testing::Values(Run{"Kto", "kto"},
                                           Run{"KtoDesirable", "kto, desirable 1.5"},
                                           Run{"ApoZeroUnpaired", "apo_zero_unpaired"}),
                         title_of);

TEST(GoldenPreference, SomeFilesAreThere) {
  test::expect_some_golden({"trl/dpo.json", "trl/simpo.json", "trl/orpo.json", "trl/kto.json"});
}

}  // namespace
}  // namespace troupe::algorithms
