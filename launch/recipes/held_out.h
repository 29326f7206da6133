// Evaluation on held-out rows, for the recipes that train on rows: the checks of the section
// `eval`, the rows, and the run.
#pragma once

#include <utility>

#include "algorithms/held_out.h"
#include "algorithms/rollout/evaluation.h"
#include "launch/recipes/role.h"
#include "launch/recipes/run_context.h"
#include "launch/recipes/validate.h"

namespace troupe::launch::recipes {

/// For methods that evaluate the loss of held-out rows.
void validate_eval(Validation& v);
/// For methods that sample.
void validate_prompt_eval(Validation& v);

/// The keys sync_every and sync_share of a method's section. A reference that is updated is a model
/// of its own; with an adapter it is the frozen base.
void validate_following(Validation& v, std::string_view section,
                        const algorithms::ReferenceSync& following);

/// A reference model, which is updated if the method's settings say so.
template <algorithms::Method M>
RolesNeeded roles_with_reference(const config::RunConfig& config) {
  return {.reference = {true},
          .reference_follows = algorithms::settings_of<M>(config).following.every > 0};
}

/// True if the run has rows to evaluate on: eval.path or data.split.
bool has_held_out(const config::RunConfig& config);
/// Logs what was read for the evaluation, if data.split chose it.
void log_held_out(const config::RunConfig& config, const engine::data::DataReport& report);
/// The data options for the rows to evaluate on: those of eval.path, or those that data.split holds
/// out.
engine::data::DataOptions eval_options(const RunContext& context);
/// The rows to evaluate on, read as T, in batches of train.batch_size, which `batch_of` converts;
/// none if there are none.
template <class T, class BatchOf>
algorithms::HeldOut held_out_batches(const RunContext& context,
                                     const engine::data::DataOptions& options, BatchOf&& batch_of) {
  const config::RunConfig& config = context.config();
  algorithms::HeldOut out{.batches = {}, .every = config.eval.every};
  if (!has_held_out(config)) return out;
  const auto rows = value_or_throw(engine::data::load<T>(options, context.text()));
  log_held_out(config, rows.report);
  for (const auto& batch : algorithms::in_batches(rows.examples, config.train.batch_size))
    out.batches.push_back(batch_of(batch));
  return out;
}

/// Sampling of held-out prompts, without the rows.
algorithms::HeldOutPrompts eval_settings(const config::RunConfig& config);
/// The prompts of eval.path; none without a path. `samples_at_once`: those of a rollout step.
algorithms::HeldOutPrompts held_out_prompts(const RunContext& context,
                                            std::int64_t samples_at_once);

/// Runs `algorithm`, a loop over the batches of `data`, to its end. Returns the exit code.
template <class T, class Settings, class HeldOut, class Algorithm>
int run_on_rows(RunContext& context, engine::data::Loader<T>& data, const Settings& settings,
                HeldOut held_out, Algorithm&& algorithm) {
  auto actors = context.cluster();
  const auto plan = context.begin(data.batches(), 1);
  return context.run(algorithm(actors, data, plan, settings, std::move(held_out)), plan);
}

}  // namespace troupe::launch::recipes
