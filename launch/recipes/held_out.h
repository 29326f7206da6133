// What every recipe shares that judges its policy by held-out rows: the keys of the section eval, their checks, the rows.
#pragma once

#include <span>

#include "algorithms/preference.h"
#include "launch/fields.h"
#include "launch/recipes/judging.h"
#include "launch/run/stage.h"

namespace troupe::launch {

std::span<const Field> eval_fields();
void judge_eval(Judging& j);

/// A reference that follows the policy is a model of its own; with an adapter it is the base, which nothing moves.
void judge_following(Judging& j, std::string_view key, std::int64_t every);

/// data_options() of the run, for eval.path.
engine::data::DataOptions eval_options(const Stage& stage);
/// The rows of eval.path as batches of train.batch_size pairs; none without a path.
algorithms::HeldOut held_out_pairs(const Stage& stage, bool nll_on_prompt = false);

/// "+ 0.5 mean over the chosen answers' tokens of - log p": of the recipes that add it. Empty when the weight is 0.
std::string nll_formula(double weight, const std::string& mean);

}  // namespace troupe::launch
