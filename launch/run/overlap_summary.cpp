#include "launch/run/overlap_summary.h"

#include <algorithm>

#include "engine/base/text/text.h"

namespace troupe::launch::run {

namespace {

// Shares of the time: a side that is idle for less works all the time.
constexpr double little = 0.05;

std::string percent(double share) {
  return cat(to_text(100 * share, 0), " %");
}

std::string advice(double rollout, double policy, std::int64_t eta) {
  const double less = std::min(rollout, policy), more = std::max(rollout, policy);
  if (more < little) return "balanced: both work all the time";
  if (eta == 0)
    return "nothing overlaps, because async.eta is 0. Consider async.eta=1, with which the next "
           "batch is sampled during training";
  if (less > more / 2)
    return "both wait for rewards or for each other. Consider a larger async.eta and "
           "async.in_flight, or faster rewards (the workers of a rule, more verifiers)";
  if (policy > rollout)
    return "rollout-bound, training waits for samples. Consider more processors for the rollouts "
           "(rollout.threads, or more rollout groups of the cluster), fewer for the policy, or a "
           "lower rollout.max_new_tokens";
  return "training-bound, the rollouts wait for weights. Consider more processors for the policy "
         "(train.threads, parallel.dp), fewer for the rollouts, or a smaller train.batch_size";
}

}  // namespace

std::string overlap_summary(const journal::IdleSeconds& idle, std::int64_t eta, bool take_turns) {
  if (idle.all <= 0) return "";
  if (take_turns)
    return "async: sampling and training took turns on the same processors. Set rollout.threads, "
           "or start groups of processes (troupe launch --cluster)";
  const double rollout = idle.rollout / idle.all, policy = idle.policy / idle.all;
  return cat("async: the rollouts were idle for ", percent(rollout),
             " of the time, the policy for ", percent(policy), ": ", advice(rollout, policy, eta));
}

}  // namespace troupe::launch::run
