// TRL's PPOTrainer, replayed (curve.h): the sampled sequences are given; scores, log-probabilities,
// values, advantages, returns and three epochs of updates are ours. Metrics are those of the log,
// means over an update's epochs, within 2e-5 (relative above 1).
#include <numeric>

#include "algorithms/ppo_minibatches.h"
#include "tests/golden/scored.h"

namespace troupe::algorithms {
namespace {

PpoConfig config_of(const Curve& curve) {
  const Json& settings = curve.settings();
  const auto number = [&](const char* key) { return settings.find(key)->number(); };
  PpoConfig config;
  config.epochs = static_cast<int>(curve.hyper("epochs"));
  config.minibatches = static_cast<int>(curve.hyper("mini_batches"));
  config.kl = settings.find("kl_estimator")->string() == "k1" ? KlEstimator::k1 : KlEstimator::k3;
  config.kl_coef = number("kl_coef");
  config.gae = {.gamma = number("gamma"), .lambda = number("lam")};
  config.whiten_rewards =
      settings.find("whiten_rewards") && settings.find("whiten_rewards")->boolean();
  config.policy.surrogate.clip_low = config.policy.surrogate.clip_high = number("cliprange");
  config.value = {.clip = number("cliprange_value"), .coef = number("vf_coef")};
  config.sampling.max_new_tokens =
      static_cast<std::int32_t>(curve.file.find("response_tokens")->number());
  return config;
}

// Means over an update's epochs.
using Log = std::map<std::string, double>;

class GoldenPpo : public GoldenCurve {
 protected:
  GoldenPpo() : GoldenCurve("trl/ppo.json") {}

  engine::train::Trainer trainer(std::unique_ptr<engine::models::Decoder> model) const {
    engine::train::TrainerOptions options;
    options.micro_batch_tokens = 100;  // several micro-batches an update
    options.optimizer = {.betas = {0.9, 0.999}, .eps = 1e-8, .weight_decay = 0, .max_grad_norm = 0};
    return {std::move(model), options};
  }
  RolloutBatch samples_of(const Json::Array& sequences) const {
    const auto prompt = static_cast<std::ptrdiff_t>(curve_->file.find("prompt_tokens")->number());
    RolloutBatch out;
    for (const Json& sequence : sequences) {
      const auto ids = numbers<std::int32_t>(sequence);
      std::vector<float> mask(ids.size(), 1.0f);
      std::fill_n(mask.begin(), prompt, 0.0f);
      out.batch.append(ids, mask);
      out.completions.push_back({0,
                                 {ids.begin() + prompt, ids.end()},
                                 {},
                                 {},
                                 "",
                                 protocol::FinishReason::length,
                                 {},
                                 0});
    }
    return out;
  }
  // The score of each sequence, read at its last token.
  std::vector<double> scores(engine::models::Decoder& reward_model, Experience batch) const {
    std::ranges::fill(batch.mask, 0.0f);
    std::vector<double> out;
    for (std::size_t n = 1; n < batch.offsets.size(); ++n)
      batch.mask[static_cast<std::size_t>(batch.offsets[n]) - 1] = 1;
    const auto all =
        engine::train::scores(reward_model, batch, engine::loss::ReadAt::token, {}, {});
    for (std::size_t n = 1; n < batch.offsets.size(); ++n)
      out.push_back(static_cast<double>(all[static_cast<std::size_t>(batch.offsets[n]) - 1]));
    return out;
  }
  void expect(std::size_t step, const Log& found) const {
    for (const auto& [name, logged] : curve_->logged(step).object()) {
      ASSERT_TRUE(found.contains(name)) << name;
      EXPECT_NEAR(found.at(name), logged.number(), 2e-5 * std::max(1.0, std::abs(logged.number())))
          << name << " of update " << step;
    }
  }
};

Log log_of(const std::vector<Log>& epochs, const Metrics& round) {
  Log log;
  for (const Log& epoch : epochs)
    for (const auto& [name, value] : epoch) log[name] += value / static_cast<double>(epochs.size());
  double squares = 0;
  for (const Log& epoch : epochs)
    squares += std::pow(epoch.at("val/ratio") - log.at("val/ratio"), 2);
  log["val/ratio_var"] = squares / static_cast<double>(epochs.size() - 1);
  for (const auto& [name, value] : round) log[name] = value;
  return log;
}

// Update 5 of K3AndDiscount amplifies float32 noise: its val/ratio_var is 1.7557117 in
// TRL, 1.7556999 summed in float64, and 1.755670 to 1.755690 on the CPU device, by the order of the
// gradients' sums.
TEST_P(GoldenPpo, EveryUpdateIsReproduced) {
  if (std::string_view(GetParam().title) == "K3AndDiscount")
    curve_->device = engine::ops::make_reference_device();
  const PpoConfig config = config_of(*curve_);
  auto& device = *curve_->device;
  auto policy =
      trainer(value_or_throw(engine::checkpoint::load_decoder(device, model_folder, true)));
  auto critic = trainer(with_score_head(device, 1, false, 0.1));
  const auto reward_model = with_score_head(device, 1, false, 0.5);
  const auto reference =
      value_or_throw(engine::checkpoint::load_decoder(device, model_folder, false));
  const auto& rounds = curve_->run.find("sequences")->array();
  for (std::size_t step = 0; step < rounds.size(); ++step) {
    RolloutBatch round = samples_of(rounds[step].array());
    round.batch.old_logp = policy.logprobs(round.batch, config.sampling.temperature);
    round.batch.reference_logp = engine::train::logprobs(
        *reference, round.batch, {.temperature = config.sampling.temperature});
    for (const double score : scores(*reward_model, round.batch))
      round.rewards.push_back({score, {}, ""});
    compute_advantages(round,
                       critic.scores(critic_inputs(round.batch), engine::loss::ReadAt::token, {}),
                       config.kl_coef, config);
    std::vector<Log> epochs;
    for (const auto& update : minibatches(round, config, step)) {
      const auto valued = critic.forward_backward(update.critic, config.value);
      const auto acted = policy.forward_backward(update.policy, config.policy);
      value_or_throw(critic.update(curve_->hyper("learning_rate")));
      value_or_throw(policy.update(curve_->hyper("learning_rate")));
      auto log = acted.report.values();
      for (const auto& [name, value] : valued.report.values()) log[name] = value;
      epochs.push_back(std::move(log));
    }
    expect(step, log_of(epochs, round.metrics));
  }
}

INSTANTIATE_TEST_SUITE_P(Trl, GoldenPpo,
                         ::testing::Values(Run{"K1", "k1"}, Run{"K3AndDiscount", "k3, gamma 0.98"},
                                           Run{"WhitenedRewards", "whitened rewards"}),
                         title_of);

}  // namespace
}  // namespace troupe::algorithms
