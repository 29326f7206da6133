#include "algorithms/preference.h"

#include <algorithm>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {
namespace {

using engine::data::Experience;
using Pairs = engine::data::Loader<engine::data::PairExample>;
using Batch = engine::data::Batch<engine::data::PairExample>;

template <class Ref>
Task<std::vector<float>> score(Cluster& c, Ref model, const Experience& batch) {
  constexpr bool reference = std::is_same_v<Ref, ReferenceRef>;
  c.journal.passed({reference ? PassModel::reference : PassModel::policy, false, sizes_of(batch)});
  protocol::Logprobs message{batch, 1.0};
  auto scoring = model.ask(std::move(message), c.timeout);
  auto logp = co_await scoring.get();
  co_return logp;
}

// Reference log-probabilities of every pair of the data set, in its order: [pairs][tokens of both].
Task<std::vector<std::vector<float>>> score_all(Cluster& c, const Pairs& data) {
  const auto& examples = data.dataset().examples;
  std::vector<std::vector<float>> all;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    Batch one;
    one.examples.push_back(&examples[i]);
    one.ids.push_back(i);
    const auto batch = pair_batch(one, false);
    auto scoring = score(c, *c.reference, batch);
    auto logp = co_await scoring;
    all.push_back(std::move(logp));
    if (i % 64 == 0)
      c.journal.progress("scoring with the reference", static_cast<std::int64_t>(i),
                         std::ssize(examples));
  }
  co_return all;
}

// Scores the held-out batches once if the reference is never updated.
Task<void> score_held_out(Cluster& c, std::vector<Experience>& batches, bool again) {
  for (auto& batch : batches) {
    if (!again && !batch.reference_logp.empty()) continue;
    auto logp = co_await score(c, *c.reference, batch);
    batch.reference_logp = std::move(logp);
  }
}

Task<Metrics> evaluate_pairs(Cluster& c, std::vector<Experience>& batches,
                             const PairTraining& training) {
  const ActivityScope evaluating(c.journal, Activity::evaluation);
  c.journal.progress("evaluating held-out pairs", 0, std::ssize(batches));
  if (training.reference) {
    co_await score_held_out(c, batches, training.following.every > 0);
  }
  EvalMetrics eval(training.held_out_loss);
  std::int64_t done = 0;
  for (const auto& batch : batches) {
    c.journal.progress("evaluating held-out pairs", done++, std::ssize(batches));
    const auto logp = co_await score(c, c.policy, batch);
    eval.add(batch, logp);
  }
  co_return eval.metrics();
}

Task<std::vector<std::vector<float>>> precompute_reference_logp(Cluster& c, const Pairs& data,
                                                                std::vector<Experience>& held_out) {
  co_await score_held_out(c, held_out, false);
  auto scored = co_await score_all(c, data);
  protocol::Release done;
  auto releasing = c.reference->ask(std::move(done), c.timeout);
  co_await releasing.get();
  co_return scored;
}

}  // namespace

Experience pair_batch(const Batch& pairs, bool nll_on_prompt) {
  auto batch = engine::data::to_experience(pairs);
  if (nll_on_prompt) {
    batch.answer = batch.mask;
    for (std::size_t n = 0; n + 1 < batch.offsets.size(); n += 2)
      std::fill(batch.mask.begin() + batch.offsets[n] + 1,
                batch.mask.begin() + batch.offsets[n + 1], 1.0f);
  }
  set_nll_tokens(batch);
  return batch;
}

Task<void> train_on_pairs(Cluster& c, Pairs& data, TrainingPlan plan, PairTraining training,
                          HeldOut held_out) {
  check(!(training.precompute_reference && training.following.every > 0),
        "a reference that moves cannot be scored ahead");
  std::vector<std::vector<float>> scored;
  if (training.precompute_reference) {
    scored = co_await precompute_reference_logp(c, data, held_out.batches);
  }
  for (std::int64_t step = plan.done + 1; step <= plan.steps; ++step) {
    const auto pairs = data.next();
    if (!pairs) break;
    auto batch = pair_batch(*pairs, training.nll_on_prompt);
    c.journal.processed(processed_of(batch, data.epoch()));
    if (training.precompute_reference) {
      for (const auto id : pairs->ids) {
        const auto& logp = scored[id % scored.size()];
        batch.reference_logp.insert(batch.reference_logp.end(), logp.begin(), logp.end());
      }
    } else if (training.reference) {
      batch.reference_logp = co_await score(c, *c.reference, batch);
    }
    auto metrics = co_await update(c, plan, step, std::move(batch), training.loss);
    if (held_out.due(step, plan.steps)) {
      const auto eval = co_await evaluate_pairs(c, held_out.batches, training);
      metrics.insert(metrics.end(), eval.begin(), eval.end());
    }
    const bool more =
        co_await finish_step(c, plan, step, std::move(metrics), training.following, data.state());
    if (!more) break;
  }
}

}  // namespace troupe::algorithms
