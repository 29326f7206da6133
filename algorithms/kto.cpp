#include "algorithms/kto.h"

namespace troupe::algorithms {
namespace {

using engine::data::Experience;
using Answers = engine::data::Loader<engine::data::UnpairedExample>;

// Fills in the loss's inputs besides the policy: the reference's log-probabilities, and z as
// `scale`.
Task<void> compare(Cluster& c, Experience& batch, const Experience& mismatched) {
  c.journal.passed({PassModel::reference, false, sizes_of(batch)});
  protocol::Logprobs matched{batch, 1.0};
  auto scoring = c.reference->ask(std::move(matched), c.timeout);
  if (mismatched.sequences() == 0) {
    batch.scale = 0;
  } else {
    c.journal.passed({PassModel::reference, false, sizes_of(mismatched)});
    c.journal.passed({PassModel::policy, false, sizes_of(mismatched)});
    protocol::Logprobs theirs{mismatched, 1.0}, ours{mismatched, 1.0};
    auto scoring_reference = c.reference->ask(std::move(theirs), c.timeout);
    auto scoring_policy = c.policy.ask(std::move(ours), c.timeout);
    const auto reference = co_await scoring_reference.get();
    const auto policy = co_await scoring_policy.get();
    batch.scale = mismatched_kl(mismatched, policy, reference);
  }
  auto logp = co_await scoring.get();
  batch.reference_logp = std::move(logp);
}

// TRL's rewards/margins: the means of either kind of answer, where the batch has both.
void add_margin(Metrics& metrics, const std::string& prefix) {
  const double* good = find_metric(metrics, prefix + "rewards/chosen");
  const double* bad = find_metric(metrics, prefix + "rewards/rejected");
  if (good && bad) metrics.emplace_back(prefix + "rewards/margins", *good - *bad);
}

Task<Metrics> evaluate_answers(Cluster& c, HeldOutAnswers& held_out,
                               const engine::loss::LossSpec& loss) {
  const ActivityScope evaluating(c.journal, Activity::evaluation);
  EvalMetrics eval(loss);
  for (std::size_t i = 0; i < held_out.matched.batches.size(); ++i) {
    auto& batch = held_out.matched.batches[i];
    c.journal.progress("evaluating held-out answers", static_cast<std::int64_t>(i),
                       std::ssize(held_out.matched.batches));
    c.journal.passed({PassModel::policy, false, sizes_of(batch)});
    auto comparing = compare(c, batch, held_out.mismatched[i]);
    co_await comparing;
    protocol::Logprobs message{batch, 1.0};
    auto scoring = c.policy.ask(std::move(message), c.timeout);
    const auto logp = co_await scoring.get();
    eval.add(batch, logp);
  }
  auto metrics = eval.metrics();
  add_margin(metrics, "eval/");
  co_return metrics;
}

}  // namespace

Task<void> kto(Cluster& c, Answers& data, TrainingPlan plan, KtoConfig config,
               HeldOutAnswers held_out) {
  const auto loss = spec_of(config.loss);
  const bool with_kl = config.loss.kind == KtoLossKind::kto;
  for (std::int64_t step = plan.done + 1; step <= plan.steps; ++step) {
    const auto answers = data.next();
    if (!answers) break;
    auto batch = engine::data::to_experience(*answers, config.max_length);
    const auto mismatched =
        with_kl ? engine::data::mismatched(*answers, config.max_length) : Experience{};
    c.journal.processed(processed_of(batch, data.epoch()));
    co_await compare(c, batch, mismatched);
    auto metrics = co_await update(c, plan, step, std::move(batch), loss);
    add_margin(metrics, "");
    if (held_out.matched.due(step, plan.steps)) {
      const auto eval = co_await evaluate_answers(c, held_out, loss);
      metrics.insert(metrics.end(), eval.begin(), eval.end());
    }
    const bool more =
        co_await finish_step(c, plan, step, std::move(metrics), config.following, data.state());
    if (!more) break;
  }
}

}  // namespace troupe::algorithms
