#include "actors/roles/reward_models.h"

#include "engine/base/text/text.h"

namespace troupe::actors::roles {
namespace {

Result<> check_head(const RewardPart& part) {
  const int labels = part.model->spec().labels;
  const auto wrong = [&](std::string_view expected) {
    return fail(Errc::usage, cat("reward ", quote(part.label), ": expected ", expected, ", found ",
                                 labels == 0 ? "a language model"
                                             : cat("a model with a score head of ", labels,
                                                   labels == 1 ? " label" : " labels")));
  };
  const auto* process = std::get_if<ProcessScoring>(&part.scoring);
  if (!process && labels != 1)
    return wrong(
        "an outcome reward model, whose score head has one label (train one with --algorithm orm)");
  if (process && process->tokens && labels != 0)
    return wrong("a language model that was trained at placeholders (prm.kind: placeholder)");
  if (process && !process->tokens && labels <= process->right)
    return wrong(cat("a process reward model, whose score head has a label ", process->right,
                     " (train one with --algorithm prm)"));
  return {};
}

}  // namespace

Result<RewardModels> RewardModels::create(std::vector<RewardPart> parts,
                                          engine::train::ScoringOptions options,
                                          const engine::parallel::Mesh* mesh) {
  for (const RewardPart& part : parts) {
    RETURN_IF_ERROR(check_head(part));
    if (auto good = validate_scoring(part.scoring); !good)
      return fail(good.error().code, cat("reward ", quote(part.label), ": ", good.error().what));
  }
  return RewardModels(std::move(parts), options, mesh);
}

Result<std::vector<protocol::RewardResult>> RewardModels::on(protocol::ComputeRewards message) {
  std::vector<protocol::RewardResult> all;
  if (message.requests.empty()) return all;
  for (const RewardPart& part : parts_) {
    const auto query = scoring_batch(message.requests, part.scoring);
    const auto* process = std::get_if<ProcessScoring>(&part.scoring);
    const auto candidates =
        process && process->tokens ? process->tokens->reward_ids : std::vector<std::int32_t>{};
    const auto scores = engine::train::scores(*part.model, query.batch, engine::loss::ReadAt::token,
                                              candidates, options_, mesh_ ? &mesh_->dp() : nullptr);
    auto results = reward_results(query, scores, part.scoring, part.label, part.weight);
    if (all.empty()) {
      all = std::move(results);
    } else {
      for (std::size_t n = 0; n < all.size(); ++n) add(results[n], all[n]);
    }
  }
  return all;
}

}  // namespace troupe::actors::roles
