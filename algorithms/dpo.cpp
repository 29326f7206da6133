// Direct preference optimization (Rafailov et al. 2023, arXiv:2305.18290) and its relatives: the loss alone differs.
#include "algorithms/dpo.h"

#include "engine/base/text.h"

namespace troupe::algorithms {
namespace {

using Pairs = engine::data::Loader<engine::data::PairExample>;
using Batch = engine::data::Batch<engine::data::PairExample>;

Task<std::vector<float>> score(Cluster& c, const engine::data::Experience& batch) {
  protocol::Logprobs message{batch, 1.0};
  auto scoring = c.reference->ask(std::move(message), c.patience);
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
    const auto batch = engine::data::to_experience(one);
    auto scoring = score(c, batch);
    auto logp = co_await scoring;
    all.push_back(std::move(logp));
    if (i % 64 == 0) c.journal.status(cat("scoring the reference: pair ", i, " of ", examples.size()));
  }
  protocol::Release done;
  auto releasing = c.reference->ask(std::move(done), c.patience);
  co_await releasing.get();
  co_return all;
}

}  // namespace

Task<void> dpo(Cluster& c, Pairs& data, Plan plan, DpoConfig config) {
  std::vector<std::vector<float>> scored;
  if (config.precompute_reference) {
    auto scoring = score_all(c, data);
    scored = co_await scoring;
  }
  for (std::int64_t step = plan.done + 1; step <= plan.steps; ++step) {
    const auto pairs = data.next();
    if (!pairs) break;
    auto batch = engine::data::to_experience(*pairs);
    if (scored.empty()) {
      auto scoring = score(c, batch);
      batch.reference_logp = co_await scoring;
    } else {
      for (const auto id : pairs->ids) {
        const auto& logp = scored[id % scored.size()];
        batch.reference_logp.insert(batch.reference_logp.end(), logp.begin(), logp.end());
      }
    }
    auto stepping = take_step(c, plan, step, std::move(batch), spec_of(config.loss), data.state());
    const bool more = co_await stepping;
    if (!more) break;
  }
}

}  // namespace troupe::algorithms
