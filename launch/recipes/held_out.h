// What every recipe shares that trains on rows and judges its policy by held-out ones: the keys of
// the section eval, their checks, the rows, the run.
#pragma once

#include <span>
#include <utility>

#include "algorithms/preference.h"
#include "launch/config/fields.h"
#include "launch/recipes/judging.h"
#include "launch/recipes/run_context.h"

namespace troupe::launch {

std::span<const Field> eval_fields();
void judge_eval(Judging& j);

/// A reference that follows the policy is a model of its own; with an adapter it is the base, which
/// nothing moves.
void judge_following(Judging& j, std::string_view key, std::int64_t every);

/// data_options() of the run, for eval.path.
engine::data::DataOptions eval_options(const RunContext& context);
/// The rows of eval.path as batches of train.batch_size, read by `load` and made by `batch_of`
/// (functions of the data library); none without a path. `options`: eval_options, and what the
/// recipe adds.
template <class Load, class BatchOf>
algorithms::HeldOut held_out_batches(const RunContext& context,
                                     const engine::data::DataOptions& options, Load&& load,
                                     BatchOf&& batch_of) {
  algorithms::HeldOut out{.batches = {}, .every = context.config().eval.every};
  if (context.config().eval.path.empty()) return out;
  const auto rows = value_or_throw(load(options, context.text()));
  for (const auto& batch : algorithms::in_batches(rows.examples, context.config().train.batch_size))
    out.batches.push_back(batch_of(batch));
  return out;
}
/// As batches of train.batch_size pairs.
algorithms::HeldOut held_out_pairs(const RunContext& context, bool nll_on_prompt = false);

/// Calls the actors, begins the run, and drives `algorithm`, a loop over the batches of `data`, to
/// its end; the exit code.
template <class T, class Settings, class HeldOut, class Algorithm>
int run_on_rows(RunContext& context, engine::data::Loader<T>& data, const Settings& settings,
                HeldOut held_out, Algorithm&& algorithm) {
  auto actors = context.cluster();
  const auto plan = context.begin(data.batches());
  return context.run(algorithm(actors, data, plan, settings, std::move(held_out)), plan);
}
template <class Settings, class Algorithm>
int run_on_pairs(RunContext& context, const Settings& settings, Algorithm&& algorithm,
                 bool nll_on_prompt = false) {
  auto data = context.loader<engine::data::PairExample>(context.data_options());
  return run_on_rows(context, data, settings, held_out_pairs(context, nll_on_prompt), algorithm);
}

/// "+ 0.5 mean over the chosen answers' tokens of - log p": of the recipes that add it. Empty when
/// the weight is 0.
std::string nll_formula(double weight, const std::string& mean);

}  // namespace troupe::launch
