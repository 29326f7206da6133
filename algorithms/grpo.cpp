// Group Relative Policy Optimization (Shao et al. 2024, arXiv:2402.03300): sample a group of answers to each prompt, judge them, prefer
// those above their group's mean. One step is one optimizer update; epochs * minibatches updates share one batch of samples.
#include "algorithms/grpo.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "actors/runtime/together.h"
#include "algorithms/grpo_batch.h"
#include "algorithms/refresh.h"
#include "engine/base/text.h"

namespace troupe::algorithms {
namespace {

using Prompts = engine::data::Batch<engine::data::PromptRow>;

// A run of the round's draws, from prompt to judgement. What stands here when all is done does not depend on who drew it, or when.
struct Piece {
  std::size_t first;  ///< of its samples among all
  std::vector<protocol::Draw> draws;
  std::vector<protocol::Drawn> drawn;
  std::optional<actors::Reply<std::vector<protocol::Verdict>>> judging;
  std::optional<actors::Reply<std::vector<float>>> scoring;  ///< by the reference; only with a KL term
};

struct Round {
  const Prompts& prompts;
  const GrpoConfig& config;
  std::vector<Piece> pieces;
  std::size_t next = 0;  ///< the first piece that no rollout was asked for
};

Round round_of(const Prompts& prompts, const GrpoConfig& config, std::size_t parts) {
  Round round{prompts, config, {}, 0};
  std::size_t first = 0;
  for (auto& draws : split_draws(draws_for(prompts, config.group), parts)) {
    const std::size_t count = draws.size();
    round.pieces.push_back({first, std::move(draws), {}, {}, {}});
    first += count;
  }
  return round;
}

// Verifier and reference get a piece as soon as it is drawn; their answers are awaited later.
void ask_what_it_is_worth(Cluster& c, const Round& round, Piece& piece) {
  protocol::Judge question{submissions_of(round.prompts, piece.drawn, piece.first, round.config)};
  piece.judging = c.verifier->ask(std::move(question), c.patience);
  if (round.config.loss.beta == 0) return;
  protocol::Logprobs message{assemble(round.prompts, piece.drawn, piece.first, round.config), round.config.sampling.temperature};
  piece.scoring = c.reference->ask(std::move(message), c.patience);
}

// A rollout that is ahead of the others draws more of the pieces; where it has several, the next waits in its mailbox already.
Task<void> keep_busy(Cluster& c, const RolloutRef& rollout, Round& round) {
  std::deque<std::pair<Piece*, actors::Reply<std::vector<protocol::Drawn>>>> asked;
  const std::size_t at_once = std::min<std::size_t>(2, c.pieces);
  for (;;) {
    while (asked.size() < at_once && round.next < round.pieces.size()) {
      Piece& piece = round.pieces[round.next++];
      protocol::Generate message{std::move(piece.draws), round.config.sampling};
      asked.emplace_back(&piece, rollout.ask(std::move(message), c.patience));
    }
    if (asked.empty()) co_return;
    auto [piece, drawing] = std::move(asked.front());
    asked.pop_front();
    piece->drawn = co_await drawing.get();
    ask_what_it_is_worth(c, round, *piece);
  }
}

// consumes: prompts · asks: every rollout at once, then verifier and reference for each piece as it comes, while the rollouts draw
// others · produces: judged samples in the order of the prompts
Task<Sampled> sample_and_judge(Cluster& c, const Prompts& prompts, const GrpoConfig& config) {
  Round round = round_of(prompts, config, c.rollouts.size() * c.pieces);
  std::vector<Task<void>> at_work;
  for (const auto& rollout : c.rollouts) at_work.push_back(keep_busy(c, rollout, round));
  auto drawing = actors::together(std::move(at_work));
  co_await drawing;
  Sampled sampled;
  std::vector<float> reference_logp;
  std::vector<protocol::Verdict> verdicts;
  for (Piece& piece : round.pieces) {
    std::move(piece.drawn.begin(), piece.drawn.end(), std::back_inserter(sampled.drawn));
    if (piece.scoring) {
      const auto logp = co_await piece.scoring->get();
      reference_logp.insert(reference_logp.end(), logp.begin(), logp.end());
    }
    auto judged = co_await piece.judging->get();
    std::move(judged.begin(), judged.end(), std::back_inserter(verdicts));
  }
  sampled.batch = assemble(prompts, sampled.drawn, 0, config);
  sampled.batch.reference_logp = std::move(reference_logp);
  settle(sampled, std::move(verdicts), config);
  co_return sampled;
}

}  // namespace

Task<void> grpo(Cluster& c, engine::data::Loader<engine::data::PromptRow>& data, Plan plan, GrpoConfig config) {
  for (std::int64_t step = plan.done; step < plan.steps;) {
    const auto prompts = data.next();
    if (!prompts) break;
    auto refreshing = refresh_rollouts(c);
    co_await refreshing;
    c.journal.status(cat("step ", step + 1, ": drawing ", prompts->ids.size() * static_cast<std::size_t>(config.group), " samples"));
    auto sampling = sample_and_judge(c, *prompts, config);
    const auto sampled = co_await sampling;
    show(c.journal, step + 1, *prompts, sampled, config.shown);

    const std::int64_t before = step;
    auto updates = updates_of(sampled, config);
    for (auto& update : updates) {
      if (step == plan.steps) break;
      ++step;
      protocol::TrainStep message{std::move(update), spec_of(config.loss), plan.rate(step)};
      auto training = c.policy.ask(std::move(message), c.patience);
      const auto stats = co_await training.get();
      auto metrics = metrics_of(stats);
      metrics.insert(metrics.end(), sampled.metrics.begin(), sampled.metrics.end());
      c.journal.record(step, metrics);
    }
    const Json place = data.state();
    auto ending = end_step(c, plan, before, step, place);
    const bool more = co_await ending;
    if (!more) break;
  }
}

}  // namespace troupe::algorithms
