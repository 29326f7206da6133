// TRL's policy gradients without a critic, replayed (curve.h): GRPO and its variants, RLOO.
#include <map>
#include <numeric>

#include "algorithms/advantages/advantage.h"
#include "algorithms/losses/grpo_loss.h"
#include "tests/golden/curve.h"

namespace troupe::algorithms {
namespace {

class GoldenGrpo : public GoldenCurve {
 protected:
  GoldenGrpo() : GoldenCurve("trl/grpo.json") {}
};

// TRL's loss type names a surrogate and an average in one word.
void set_loss_type(GrpoLoss& loss, const std::string& type) {
  if (type == "cispo") loss.surrogate.kind = SurrogateKind::cispo;
  if (type == "sapo") loss.surrogate.kind = SurrogateKind::sapo;
  if (type == "vespo") loss.surrogate.kind = SurrogateKind::vespo;
  loss.aggregation = Aggregation::token_global;
  if (type == "grpo" || type == "sapo") loss.aggregation = Aggregation::sequence;
  if (type == "bnpo") loss.aggregation = Aggregation::token_local;
  if (type == "dr_grpo") loss.aggregation = Aggregation::constant;
  if (type == "luspo") loss.aggregation = Aggregation::sequence_sum;
}

GrpoLoss grpo_loss(const Json& settings) {
  const auto number = [&](const char* key, double otherwise) {
    return settings.find(key) ? settings.find(key)->number() : otherwise;
  };
  GrpoLoss loss;
  set_loss_type(loss, settings.find("loss_type")->string());
  auto& s = loss.surrogate;
  s.clip_low = number("epsilon", 0.2);
  s.clip_high = number("epsilon_high", s.clip_low);
  s.delta = number("delta", 0);
  s.sapo_temperature_pos = number("sapo_temperature_pos", 1);
  s.sapo_temperature_neg = number("sapo_temperature_neg", 1.05);
  s.vespo_k_pos = number("vespo_k_pos", 2);
  s.vespo_lambda_pos = number("vespo_lambda_pos", 3);
  s.vespo_k_neg = number("vespo_k_neg", 3);
  s.vespo_lambda_neg = number("vespo_lambda_neg", 2);
  loss.beta = number("beta", 0);
  loss.kl_times_ratio = settings.find("use_bias_correction_kl")->boolean();
  loss.entropy_coef = number("entropy_coef", 0);
  loss.temperature = number("temperature", 1);
  loss.top_entropy_quantile = number("top_entropy_quantile", 1);
  if (settings.find("importance_sampling_level")->string() == "sequence")
    loss.ratio = RatioLevel::sequence;
  return loss;
}

// Rows of one prompt are a group, in any order; what we compute from the rewards must be what TRL
// computed.
template <class F>
void expect_advantages(const Json& given, const std::vector<double>& rewards, F&& advantages_of) {
  std::map<std::vector<std::int32_t>, std::vector<std::size_t>> groups;
  const auto& prompts = given.find("prompts")->array();
  for (std::size_t n = 0; n < prompts.size(); ++n)
    groups[numbers<std::int32_t>(prompts[n])].push_back(n);
  std::vector<std::size_t> order;
  for (const auto& [prompt, rows] : groups) {
    if (rows.size() != 4) return;  // the same prompt twice: which rows belong together is not known
    order.insert(order.end(), rows.begin(), rows.end());
  }
  std::vector<double> grouped;
  for (const auto row : order) grouped.push_back(rewards[row]);
  const auto found = advantages_of(grouped);
  const auto expected = numbers<double>(*given.find("advantages"));
  for (std::size_t i = 0; i < order.size(); ++i)
    EXPECT_NEAR(found[i], expected[order[i]], 2e-5) << "row " << order[i];
}

Experience grpo_batch(const Json& given, const Json& settings, const GrpoLoss& loss,
                      double longest) {
  const auto &prompts = given.find("prompts")->array(),
             &completions = given.find("completions")->array();
  const auto advantages = numbers<double>(*given.find("advantages"));
  const bool drop_truncated = settings.find("mask_truncated_completions")->boolean();
  constexpr std::int32_t stop_token = 426;
  Experience b;
  const auto column = [&](const char* key, std::size_t n, std::size_t prompt,
                          std::vector<float>& into) {
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
  const std::string& scaled_by = settings.find("scale_rewards")->string();
  const auto scale = scaled_by == "group"   ? GroupScale::group
                     : scaled_by == "batch" ? GroupScale::batch
                                            : GroupScale::none;
  replay(loss, [&](const Json& given) {
    expect_advantages(given, numbers<double>(*given.find("rewards")),
                      [&](const std::vector<double>& grouped) {
                        return group_advantages(grouped, 4, scale).values;
                      });
    return grpo_batch(given, settings, loss, longest);
  });
}

// The loss of step 1 is 3.127201 in TRL, and 3.127138 with a network summed in float64: the
// optimizer's first step amplifies TRL's float32 noise to 2.03e-5.
constexpr Noise plain_k3_noise{.loss = 3e-5};

INSTANTIATE_TEST_SUITE_P(
    Trl, GoldenGrpo,
    ::testing::Values(Run{"Grpo", "grpo"}, Run{"Bnpo", "bnpo"}, Run{"DrGrpo", "dr_grpo"},
                      Run{"Dapo", "dapo"}, Run{"Cispo", "cispo"}, Run{"Sapo", "sapo"},
                      Run{"Luspo", "luspo"}, Run{"Vespo", "vespo"},
                      Run{"TopEntropy", "entropy mask top 20 %"},
                      Run{"PlainK3", "grpo, KL not bias-corrected (plain k3)", plain_k3_noise},
                      Run{"EntropyBonus", "dapo, entropy bonus 0.01"},
                      Run{"TruncatedMasked", "dapo, truncated completions masked"},
                      Run{"TwoSidedClip", "grpo, two-sided clip delta"},
                      Run{"SequenceRatio", "gspo: sequence-level ratio"},
                      Run{"ScaledByBatch", "advantages scaled by batch"},
                      Run{"NotScaled", "advantages not scaled"}),
    title_of);

// RLOO's KL is in the reward: k1 summed over the answer, times beta.
class GoldenRloo : public GoldenCurve {
 protected:
  GoldenRloo() : GoldenCurve("trl/grpo.json") {}
};

double sum_over(const std::vector<float>& x, const Experience& b, std::size_t n) {
  double sum = 0;
  for (auto t = static_cast<std::size_t>(b.offsets[n]);
       t < static_cast<std::size_t>(b.offsets[n + 1]); ++t)
    sum += b.mask[t] != 0 ? static_cast<double>(x[t]) : 0;
  return sum;
}

Experience rloo_batch(const Json& given) {
  const auto &prompts = given.find("prompts")->array(),
             &completions = given.find("completions")->array();
  const auto old = numbers<float>(*given.find("old_logps"));
  Experience b;
  for (std::size_t n = 0; n < prompts.size(); ++n) {
    auto ids = numbers<std::int32_t>(prompts[n]);
    const auto completion = numbers<std::int32_t>(completions[n]);
    std::vector<float> mask(ids.size(), 0.0f);
    mask.insert(mask.end(), completion.size(), 1.0f);
    b.old_logp.resize(b.old_logp.size() + mask.size(), 0.0f);
    b.old_logp[b.old_logp.size() - completion.size()] =
        old[n];  // only the sum over the answer is given, and only it is read
    ids.insert(ids.end(), completion.begin(), completion.end());
    b.append(ids, mask);
  }
  b.advantage = per_token(numbers<double>(*given.find("advantages")), b.offsets);
  set_constants(b, Aggregation::sequence, 0, 1);
  return b;
}

TEST_P(GoldenRloo, EveryStepIsReproduced) {
  const Json& settings = curve_->settings();
  const double beta = settings.find("beta")->number();
  const bool normalised = settings.find("normalize_advantages")->boolean();
  const auto iterations = static_cast<std::size_t>(settings.find("num_iterations")->number());
  auto reference =
      value_or_throw(engine::checkpoint::load_decoder(*curve_->device, model_folder, true));
  const GrpoLoss loss{.ratio = RatioLevel::sequence_sum, .aggregation = Aggregation::sequence};
  auto trained = curve_->trainer();
  std::size_t step = 0;
  replay(trained, loss, [&](const Json& given) {
    auto b = rloo_batch(given);
    const auto reference_logp = engine::train::logprobs(*reference, b, {});
    auto rewards = numbers<double>(*given.find("rewards"));
    for (std::size_t n = 0; n < rewards.size(); ++n)
      rewards[n] -= beta * (sum_over(b.old_logp, b, n) - sum_over(reference_logp, b, n));
    expect_advantages(given, rewards, [&](const std::vector<double>& grouped) {
      auto found = leave_one_out(grouped, 4).values;
      return normalised ? normalised_over_batch(found, 1e-4) : found;
    });
    // In the first update of a batch the trained weights are the sampling weights: the ratios of
    // the run were exactly 1. The float32 sums of the file would give 1 + 1e-5, so our
    // log-probabilities are used.
    if (step++ % iterations == 0) {
      const auto own = engine::train::logprobs(trained.model(), b, {});
      for (std::size_t n = 0; n < rewards.size(); ++n)
        EXPECT_NEAR(sum_over(own, b, n), sum_over(b.old_logp, b, n),
                    1e-5 * (1 + std::abs(sum_over(own, b, n))))
            << "answer " << n;
      b.old_logp.clear();
    }
    return b;
  });
}

INSTANTIATE_TEST_SUITE_P(Trl, GoldenRloo,
                         ::testing::Values(Run{"Rloo", "rloo"},
                                           Run{"Normalised", "rloo, normalised advantages"}),
                         title_of);

}  // namespace
}  // namespace troupe::algorithms
