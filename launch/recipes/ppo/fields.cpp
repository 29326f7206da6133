// The keys of the sections `ppo` and `critic`.
#include "launch/config/fields.h"
#include "launch/recipes/ppo/ppo.h"

namespace troupe::launch {
namespace {

constexpr Range up_to_10000{1, 10000};

constexpr Field table[] = {
    {"ppo.epochs", [](RunConfig& c) { return Slot(&c.ppo.epochs); },
     "passes over each round of samples", "", up_to_10000},
    {"ppo.minibatches", [](RunConfig& c) { return Slot(&c.ppo.minibatches); },
     "optimizer steps a pass, each of train.batch_size prompts; dealt anew for every pass", "",
     up_to_10000},
    {"ppo.samples", [](RunConfig& c) { return Slot(&c.ppo.samples); }, "samples a prompt", "",
     up_to_10000},
    {"ppo.gamma", [](RunConfig& c) { return Slot(&c.ppo.gamma); },
     "discount of what comes a token later", "", fraction},
    {"ppo.lambda", [](RunConfig& c) { return Slot(&c.ppo.lambda); },
     "advantage estimation: 0 trusts the critic's next value, 1 what really came", "", fraction},
    {"ppo.untrained", [](RunConfig& c) { return Slot(&c.ppo.untrained); },
     "tokens that are not trained on, inside a sample: stepped over (verl, AReaL, NeMo-RL), or "
     "steps of value zero (OpenRLHF)",
     "carry|zero", any},
    {"ppo.truncated", [](RunConfig& c) { return Slot(&c.ppo.truncated); },
     "what a sample cut at rollout.max_new_tokens would still have earned: zero (TRL, verl, "
     "OpenRLHF), or the critic's value of where it "
     "was "
     "cut (AReaL)",
     "zero|value", any},
    {"ppo.mask_truncated", [](RunConfig& c) { return Slot(&c.ppo.mask_truncated); },
     "do not train on samples that ran into rollout.max_new_tokens", "", any},
    {"ppo.whiten_advantages", [](RunConfig& c) { return Slot(&c.ppo.whiten_advantages); },
     "bring a round's advantages to mean 0 and deviation 1", "", any},
    {"ppo.whiten_rewards", [](RunConfig& c) { return Slot(&c.ppo.whiten_rewards); },
     "divide a round's token rewards by their deviation; their mean stays", "", any},
    {"ppo.variance", [](RunConfig& c) { return Slot(&c.ppo.variance); },
     "whitening divides by n - 1 (TRL, verl, MindSpeed) or by n (OpenRLHF)", "bessel|biased", any},
    {"ppo.clip_low", [](RunConfig& c) { return Slot(&c.ppo.clip_low); },
     "the importance ratio is clipped below 1 - clip_low", "", fraction},
    {"ppo.clip_high", [](RunConfig& c) { return Slot(&c.ppo.clip_high); },
     "the importance ratio is clipped above 1 + clip_high", "", at_least_0},
    {"ppo.dual_clip", [](RunConfig& c) { return Slot(&c.ppo.dual_clip); },
     "where the advantage is negative the loss is at most so many times it (verl: 3); 0: no bound",
     "", at_least_0},
    {"ppo.log_ratio_limit", [](RunConfig& c) { return Slot(&c.ppo.log_ratio_limit); },
     "log-ratios are held within +- this (verl: 20); 0: not", "", at_least_0},
    {"ppo.aggregation", [](RunConfig& c) { return Slot(&c.ppo.aggregation); },
     "mean over: grpo: sequences of their token means; bnpo: tokens of the update; dapo: tokens of "
     "the round; seq-mean-token-sum: "
     "sequences "
     "of their token sums",
     "grpo|bnpo|dapo|seq-mean-token-sum", any},
    {"ppo.entropy_coef",
     [](RunConfig& c) { return Slot(&c.ppo.entropy_coef); },
     "weight of the entropy bonus",
     "",
     {-10, 10}},
    {"ppo.kl_coef", [](RunConfig& c) { return Slot(&c.ppo.kl_coef); },
     "price of the distance to the reference; 0: no reference model", "", at_least_0},
    {"ppo.kl_place", [](RunConfig& c) { return Slot(&c.ppo.kl_place); },
     "where it is paid: token by token in the reward, or in the loss", "reward|loss", any},
    {"ppo.kl", [](RunConfig& c) { return Slot(&c.ppo.kl); },
     "estimator of the KL divergence from the reference", "k1|k2|k3|abs|k1+|k3+", any},
    {"ppo.kl_clamp", [](RunConfig& c) { return Slot(&c.ppo.kl_clamp); },
     "how a single token's KL is held: not; k3's log-ratio within +-20 and result within +-10 "
     "(verl); every result within +-10 (openrlhf)",
     "none|verl|openrlhf", any},
    {"ppo.kl_schedule", [](RunConfig& c) { return Slot(&c.ppo.kl_schedule); },
     "the coefficient stays, or follows ppo.kl_target (Ziegler et al. 2019)", "fixed|adaptive",
     any},
    {"ppo.kl_target", [](RunConfig& c) { return Slot(&c.ppo.kl_target); },
     "adaptive: nats a sample", "", above_0},
    {"ppo.kl_horizon", [](RunConfig& c) { return Slot(&c.ppo.kl_horizon); },
     "adaptive: samples until a 20 % error has moved it by 20 %", "", above_0},
    {"ppo.reference", [](RunConfig& c) { return Slot(&c.ppo.reference); },
     "reference model's directory; empty: the starting weights", "", any},
    {"ppo.score_place", [](RunConfig& c) { return Slot(&c.ppo.score_place); },
     "a sample's score is given at its last token, or one step later, for the state after its end "
     "(TRL, MindSpeed-LLM)",
     "last|after_end", any},
    {"ppo.score_scale", [](RunConfig& c) { return Slot(&c.ppo.score_scale); },
     "scores are multiplied by this", "", any},
    {"ppo.score_clip", [](RunConfig& c) { return Slot(&c.ppo.score_clip); },
     "scores are held within +- this (OpenRLHF 10, AReaL 20); 0: not", "", at_least_0},
    {"ppo.missing_eos_penalty", [](RunConfig& c) { return Slot(&c.ppo.missing_eos_penalty); },
     "taken from the score of a sample that did not end by itself", "", at_least_0},
    {"ppo.credit", [](RunConfig& c) { return Slot(&c.ppo.credit); },
     "process rewards: given as they are at the ends of their steps, or weighed so that the worst "
     "step alone pays (PURE)",
     "sum|min", any},
    {"ppo.credit_temperature", [](RunConfig& c) { return Slot(&c.ppo.credit_temperature); },
     "min: how sharply the worst is picked", "", above_0},
    {"ppo.step_baseline", [](RunConfig& c) { return Slot(&c.ppo.step_baseline); },
     "taken from every process reward: with probabilities of right steps and 0.5, wrong steps cost "
     "and more steps do not pay by themselves",
     "", any},
    {"critic.model", [](RunConfig& c) { return Slot(&c.critic.model); },
     "directory of a critic, of an outcome reward model, or of a language model to begin one from; "
     "empty: the starting weights",
     "", any},
    {"critic.value_clip", [](RunConfig& c) { return Slot(&c.critic.value_clip); },
     "values are held within +- this of those before the round; 0: not", "", at_least_0},
    {"critic.huber", [](RunConfig& c) { return Slot(&c.critic.huber); },
     "errors beyond this count linearly (AReaL: 10); 0: all squared", "", at_least_0},
    {"critic.loss_coef", [](RunConfig& c) { return Slot(&c.critic.loss_coef); },
     "factor of the value loss (TRL: 0.1); AdamW sees it in critic.max_grad_norm and critic.eps "
     "alone",
     "", above_0},
    {"critic.warmup_rounds", [](RunConfig& c) { return Slot(&c.critic.warmup_rounds); },
     "rounds of samples in which the critic alone is trained", "", at_least_0},
    {"critic.learning_rate",
     [](RunConfig& c) { return Slot(&c.critic.learning_rate); },
     "peak learning rate of the critic",
     "",
     {0, 10}},
    {"critic.schedule", [](RunConfig& c) { return Slot(&c.critic.schedule); },
     "how it falls after the warm-up", "constant|linear|cosine|inverse_sqrt", any},
    {"critic.warmup_steps", [](RunConfig& c) { return Slot(&c.critic.warmup_steps); },
     "steps of linear rise from 0", "", at_least_0},
    {"critic.min_lr_ratio", [](RunConfig& c) { return Slot(&c.critic.min_lr_ratio); },
     "the schedule ends at this part of the learning rate", "", fraction},
    {"critic.betas", [](RunConfig& c) { return Slot(&c.critic.betas); },
     "AdamW's decay rates of the two moments", "", below_1, 2},
    {"critic.eps", [](RunConfig& c) { return Slot(&c.critic.eps); }, "AdamW's epsilon", "",
     above_0},
    {"critic.weight_decay", [](RunConfig& c) { return Slot(&c.critic.weight_decay); },
     "decoupled weight decay of matrices", "", at_least_0},
    {"critic.max_grad_norm", [](RunConfig& c) { return Slot(&c.critic.max_grad_norm); },
     "clip the gradient norm to this; 0: no clipping", "", at_least_0},
};

}  // namespace

std::span<const Field> ppo_fields() {
  return table;
}

}  // namespace troupe::launch
