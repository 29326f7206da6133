// Averaging: from the losses of tokens to the loss of an update.
#pragma once

#include <array>
#include <string_view>

#include "engine/data/experience.h"
#include "engine/loss/tape.h"

namespace troupe::algorithms {

/// The denominator of the sum over an update's trained tokens: the loss divides by
/// Experience::count * Experience::scale. Names are TRL's loss types, or verl's modes where TRL has
/// none.
///   grpo                mean over sequences of their token means (verl: seq-mean-token-mean);
///                       count = sequences of the update
///   bnpo                mean over the update's tokens (verl: token-mean);
///                       count = trained tokens of the update
///   dapo                sum over tokens divided by those of the whole sampled batch
///                       (arXiv:2503.14476; TRL: num_items_in_batch);
///                       count = trained tokens of all samples of the rollout step
///   dr_grpo             sum over tokens divided by a constant length (arXiv:2503.20783;
///                       verl: seq-mean-token-sum-norm);
///                       count = sequences of the update, scale = the maximum completion length
///   seq-mean-token-sum  mean over sequences of their token sums (LUSPO over sequence ratios);
///                       count = sequences of the update
///   token-sum           sum over tokens; count = 1
enum class Aggregation { sequence, token_local, token_global, constant, sequence_sum, token_sum };
constexpr std::array<std::string_view, 6> names_of(Aggregation) {
  return {"grpo", "bnpo", "dapo", "dr_grpo", "seq-mean-token-sum", "token-sum"};
}

constexpr const char* aggregation_doc =
    "how token losses are averaged; grpo: token mean per sequence, then mean over sequences; bnpo: "
    "mean over the tokens of the update; dapo: over the tokens of all samples of the rollout; "
    "dr_grpo: sum per sequence over a constant length; seq-mean-token-sum: mean over sequences of "
    "token sums; token-sum: sum";

/// [T] -> scalar loss. Reads `b.count` and `b.scale` as set by set_constants().
engine::loss::Expr averaged(Aggregation aggregation, const engine::loss::Expr& losses,
                            const engine::data::Experience& b);

/// Treatment of sequences without a trained token (masked truncated samples, failed rewards):
/// counted as sequences of loss 0 (TRL) or excluded (verl, OpenRLHF).
struct Counting {
  bool empty_sequences = true;
};

/// Sets count and scale of an update for `aggregation`. `sampled_tokens`: the trained tokens of all
/// samples of the rollout step; `longest`: the maximum completion length. An update without trained
/// tokens gets count 1, so that its loss is 0.
void set_constants(engine::data::Experience& update, Aggregation aggregation, double sampled_tokens,
                   double longest, Counting counting = {});

}  // namespace troupe::algorithms
