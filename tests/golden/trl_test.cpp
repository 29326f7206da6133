// TRL's supervised fine-tuning and GRPO, replayed (curve.h).
#include <numeric>

#include "algorithms/advantage.h"
#include "algorithms/losses/grpo_loss.h"
#include "algorithms/losses/sft_loss.h"
#include "tests/golden/curve.h"

namespace troupe::algorithms {
namespace {

class GoldenSft : public GoldenCurve {
 protected:
  GoldenSft() : GoldenCurve("trl/sft.json") {}
};

TEST_P(GoldenSft, EveryStepIsReproduced) {
  const auto& type = curve_->settings().find("loss_type")->string();
  const SftLoss loss{.kind = type == "dft" ? SftLoss::Kind::dft : SftLoss::Kind::nll};
  replay(loss, [](const Json& given) {
    Experience b;
    for (std::size_t n = 0; n < given.find("input_ids")->array().size(); ++n) {
      std::vector<float> mask;
      for (const auto label : numbers<std::int32_t>(given.find("labels")->array()[n])) mask.push_back(label == -100 ? 0.0f : 1.0f);
      b.append(numbers<std::int32_t>(given.find("input_ids")->array()[n]), mask);
    }
    b.count = std::accumulate(b.mask.begin(), b.mask.end(), 0.0);
    return b;
  });
}

INSTANTIATE_TEST_SUITE_P(Trl, GoldenSft,
                         ::testing::Values(Run{"CompletionOnly", "completion_only"}, Run{"FullSequence", "full_sequence"},
                                           Run{"Dft", "dft"}),
                         title_of);
class GoldenGrpo : public GoldenCurve {
 protected:
  GoldenGrpo() : GoldenCurve("trl/grpo.json") {}
};

GrpoLoss grpo_loss(const Json& settings) {
  const auto number = [&](const char* key, double otherwise) { return settings.find(key) ? settings.find(key)->number() : otherwise; };
  GrpoLoss loss;
  loss = value_or_throw(fields_from_json<GrpoLoss>(Json::Object{{"aggregation", *settings.find("loss_type")}}, "golden"));
  loss.clip_low = number("epsilon", 0.2), loss.clip_high = number("epsilon_high", loss.clip_low), loss.delta = number("delta", 0);
  loss.beta = number("beta", 0), loss.kl_times_ratio = settings.find("use_bias_correction_kl")->boolean();
  loss.entropy_coef = number("entropy_coef", 0), loss.temperature = number("temperature", 1);
  loss.sequence_ratio = settings.find("importance_sampling_level")->string() == "sequence";
  return loss;
}

// Rows of one prompt are a group, in any order; what we compute from the rewards must be what TRL computed.
void expect_advantages(const Json& given, const std::string& scale_name, const std::vector<double>& advantages) {
  std::map<std::vector<std::int32_t>, std::vector<std::size_t>> groups;
  const auto& prompts = given.find("prompts")->array();
  for (std::size_t n = 0; n < prompts.size(); ++n) groups[numbers<std::int32_t>(prompts[n])].push_back(n);
  const auto rewards = numbers<double>(*given.find("rewards"));
  std::vector<std::size_t> order;
  for (const auto& [prompt, rows] : groups) {
    if (rows.size() != 4) return;  // the same prompt twice: which rows belong together is not known
    order.insert(order.end(), rows.begin(), rows.end());
  }
  std::vector<double> grouped;
  for (const auto row : order) grouped.push_back(rewards[row]);
  const auto scale = scale_name == "group" ? GroupScale::group : scale_name == "batch" ? GroupScale::batch : GroupScale::none;
  const auto found = group_advantages(grouped, 4, scale).values;
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_NEAR(found[i], advantages[order[i]], 2e-5) << "row " << order[i];
}

Experience grpo_batch(const Json& given, const Json& settings, const GrpoLoss& loss, double longest) {
  const auto &prompts = given.find("prompts")->array(), &completions = given.find("completions")->array();
  const auto advantages = numbers<double>(*given.find("advantages"));
  const bool drop_truncated = settings.find("mask_truncated_completions")->boolean();
  constexpr std::int32_t stop_token = 426;
  Experience b;
  const auto column = [&](const char* key, std::size_t n, std::size_t prompt, std::vector<float>& into) {
    if (given.find(key) == nullptr) return;
    into.insert(into.end(), prompt, 0.0f);
    for (const auto x : numbers<float>(given.find(key)->array()[n])) into.push_back(x);
  };
  for (std::size_t n = 0; n < prompts.size(); ++n) {
    auto ids = numbers<std::int32_t>(prompts[n]);
    const auto completion = numbers<std::int32_t>(completions[n]);
    const bool dropped = drop_truncated && completion.back() != stop_token;
    std::vector<float> mask(ids.size(), 0.0f);
    mask.insert(mask.end(), completion.size(), dropped ? 0.0f : 1.0f);
    column("old_per_token_logps", n, ids.size(), b.old_logp);
    column("ref_per_token_logps", n, ids.size(), b.reference_logp);
    ids.insert(ids.end(), completion.begin(), completion.end());
    b.append(ids, mask);
  }
  b.advantage = per_token(advantages, b.offsets);
  set_constants(b, loss.aggregation, given.find("num_items_in_batch")->number(), longest);
  return b;
}

TEST_P(GoldenGrpo, EveryStepIsReproduced) {
  const Json& settings = curve_->settings();
  const GrpoLoss loss = grpo_loss(settings);
  const double longest = settings.find("max_completion_length")->number();
  replay(loss, [&](const Json& given) {
    expect_advantages(given, settings.find("scale_rewards")->string(), numbers<double>(*given.find("advantages")));
    return grpo_batch(given, settings, loss, longest);
  });
}

INSTANTIATE_TEST_SUITE_P(Trl, GoldenGrpo,
                         ::testing::Values(Run{"Grpo", "grpo"}, Run{"Bnpo", "bnpo"}, Run{"DrGrpo", "dr_grpo"}, Run{"Dapo", "dapo"},
                                           Run{"PlainK3", "grpo, KL not bias-corrected (plain k3)"},
                                           Run{"EntropyBonus", "dapo, entropy bonus 0.01"},
                                           Run{"TruncatedMasked", "dapo, truncated completions masked"},
                                           Run{"TwoSidedClip", "grpo, two-sided clip delta"},
                                           Run{"SequenceRatio", "gspo: sequence-level ratio"},
                                           Run{"ScaledByBatch", "advantages scaled by batch"}, Run{"NotScaled", "advantages not scaled"}),
                         title_of);

TEST(GoldenTrl, SomeFilesAreThere) { test::expect_some_golden({"trl/sft.json", "trl/grpo.json"}); }

}  // namespace
}  // namespace troupe::algorithms
