#include "algorithms/rollout/sampling.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "actors/roles/reward_reading.h"
#include "actors/runtime/when_all.h"
#include "engine/base/check.h"

namespace troupe::algorithms {
namespace {

// A run of the round's draws, from prompt to judgement. What stands here when all is done does not
// depend on who drew it, or when.
struct Piece {
  std::size_t first;  ///< of its samples among all
  std::vector<protocol::SampleRequest> draws;
  std::vector<protocol::Completion> drawn;
  std::optional<actors::Reply<std::vector<protocol::RewardResult>>> judging,
      rating;  ///< by rules, and by models
  std::optional<actors::Reply<std::vector<float>>>
      scoring;  ///< by the reference; where it is asked
};

struct Round {
  const PromptBatch& prompts;
  const DrawConfig& config;
  bool compare;  ///< the reference is asked too
  std::vector<Piece> pieces;
  std::size_t next = 0;  ///< the first piece that no rollout was asked for
};

Round round_of(const PromptBatch& prompts, const DrawConfig& config, bool compare,
               std::size_t parts) {
  Round round{prompts, config, compare, {}, 0};
  std::size_t first = 0;
  for (auto& draws : split_draws(draws_for(prompts, config.group), parts)) {
    const std::size_t count = draws.size();
    round.pieces.push_back({first, std::move(draws), {}, {}, {}, {}});
    first += count;
  }
  return round;
}

// Verifier, reward models and reference get a piece as soon as it is drawn; their answers are
// awaited later.
void ask_what_it_is_worth(Cluster& c, const Round& round, Piece& piece) {
  check(c.verifier || c.reward, "a round of samples: nobody is there to judge them");
  if (c.verifier) {
    protocol::ComputeRewards question{
        reward_requests(round.prompts, piece.drawn, piece.first, round.config)};
    piece.judging = c.verifier->ask(std::move(question), c.patience);
  }
  if (c.reward) {
    protocol::ComputeRewards question{
        reward_requests(round.prompts, piece.drawn, piece.first, round.config)};
    piece.rating = c.reward->ask(std::move(question), c.patience);
  }
  if (!round.compare) return;
  protocol::Logprobs message{assemble(round.prompts, piece.drawn, piece.first, round.config),
                             round.config.sampling.temperature};
  piece.scoring = c.reference->ask(std::move(message), c.patience);
}

// Of rules and models together.
Task<std::vector<protocol::RewardResult>> verdicts_of(Piece& piece) {
  std::vector<protocol::RewardResult> verdicts;
  if (piece.judging) verdicts = co_await piece.judging->get();
  if (!piece.rating) co_return verdicts;
  auto rated = co_await piece.rating->get();
  if (!piece.judging) co_return rated;
  check(rated.size() == verdicts.size(),
        "a round of samples: verifier and reward models judged another number of them");
  for (std::size_t n = 0; n < rated.size(); ++n) actors::roles::add(rated[n], verdicts[n]);
  co_return verdicts;
}

// A rollout that is ahead of the others draws more of the pieces; where it has several, the next
// waits in its mailbox already.
Task<void> keep_busy(Cluster& c, const RolloutRef& rollout, Round& round) {
  std::deque<std::pair<Piece*, actors::Reply<std::vector<protocol::Completion>>>> asked;
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

}  // namespace

// consumes: prompts · asks: every rollout at once, then verifier and reference for each piece as it
// comes, while the rollouts draw others · produces: judged samples in the order of the prompts
Task<Sampled> sample_and_judge(Cluster& c, const PromptBatch& prompts, const DrawConfig& config,
                               bool compare) {
  Round round = round_of(prompts, config, compare, c.rollouts.size() * c.pieces);
  std::vector<Task<void>> at_work;
  for (const auto& rollout : c.rollouts) at_work.push_back(keep_busy(c, rollout, round));
  auto drawing = actors::when_all(std::move(at_work));
  co_await drawing;
  Sampled sampled;
  std::vector<float> reference_logp;
  std::vector<protocol::RewardResult> verdicts;
  for (Piece& piece : round.pieces) {
    std::move(piece.drawn.begin(), piece.drawn.end(), std::back_inserter(sampled.drawn));
    if (piece.scoring) {
      const auto logp = co_await piece.scoring->get();
      reference_logp.insert(reference_logp.end(), logp.begin(), logp.end());
    }
    auto judging = verdicts_of(piece);
    auto judged = co_await judging;
    std::move(judged.begin(), judged.end(), std::back_inserter(verdicts));
  }
  sampled.batch = assemble(prompts, sampled.drawn, 0, config);
  sampled.batch.reference_logp = std::move(reference_logp);
  sampled.verdicts = std::move(verdicts);
  co_return sampled;
}

Task<void> recompute_old(Cluster& c, engine::data::Experience& batch, double temperature) {
  batch.rollout_logp = batch.old_logp;
  protocol::Logprobs message{batch, temperature};
  auto scoring = c.policy.ask(std::move(message), c.patience);
  batch.old_logp = co_await scoring.get();
}

}  // namespace troupe::algorithms
