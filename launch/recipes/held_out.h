// What every recipe shares that trains on rows and judges its policy by held-out ones: the keys of
// the section eval, their checks, the rows, the run.
#pragma once

#include <span>
#include <utility>

#include "algorithms/preference.h"
#include "launch/config/fields.h"
#include "launch/recipes/judging.h"
#include "launch/run/run_context.h"

namespace troupe::launch {

std::span<const Field> eval_fields();
void judge_eval(Judging& j);

/// A reference that follows the policy is a model of its own; with an adapter it is the base, which
/// nothing moves.
void judge_following(Judging& j, std::string_view key, std::int64_t every);

/// data_options() of the run, for eval.path.
engine::data::DataOptions eval_options(const Stage& stage);
/// The rows of eval.path as batches of train.batch_size, read by `load` and made by `batch_of`
/// (functions of the data library); none without a path. `options`: eval_options, and what the
/// recipe adds.
template <class Load, class BatchOf>
algorithms::HeldOut held_out_batches(const Stage& stage, const engine::data::DataOptions& options,
                                     Load&& load, BatchOf&& batch_of) {
  algorithms::HeldOut out{.batches = {}, .every = stage.config().eval.every};
  if (stage.config().eval.path.empty()) return out;
  const auto rows = value_or_throw(load(options, stage.text()));
  for (const auto& batch : algorithms::in_batches(rows.examples, stage.config().train.batch_size))
    out.batches.push_back(batch_of(batch));
  return out;
}
/// As batches of train.batch_size pairs.
algorithms::HeldOut held_out_pairs(const Stage& stage, bool nll_on_prompt = false);

/// Calls the actors, begins the run, and drives `algorithm`, a loop over the batches of `data`, to
/// its end; the exit code.
template <class T, class Settings, class HeldOut, class Algorithm>
int run_on_rows(Stage& stage, engine::data::Loader<T>& data, const Settings& settings,
                HeldOut held_out, Algorithm&& algorithm) {
  auto actors = stage.cluster();
  const auto plan = stage.begin(data.batches());
  return stage.drive(algorithm(actors, data, plan, settings, std::move(held_out)), plan);
}
template <class Settings, class Algorithm>
int run_on_pairs(Stage& stage, const Settings& settings, Algorithm&& algorithm,
                 bool nll_on_prompt = false) {
  auto data = stage.loader<engine::data::PairExample>(stage.data_options());
  return run_on_rows(stage, data, settings, held_out_pairs(stage, nll_on_prompt), algorithm);
}

/// "+ 0.5 mean over the chosen answers' tokens of - log p": of the recipes that add it. Empty when
/// the weight is 0.
std::string nll_formula(double weight, const std::string& mean);

}  // namespace troupe::launch
