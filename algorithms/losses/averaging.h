// Averaging: how the losses of tokens become the loss of an update.
#pragma once

#include <array>
#include <string_view>

#include "engine/data/experience.h"
#include "engine/loss/tape.h"

namespace troupe::algorithms {

/// What the sum over an update's trained tokens is divided by, and what Experience::count and
/// ::scale must then be (the loss divides by count * scale). Names are TRL's loss types, or verl's
/// modes where TRL has none:
///   grpo                each sequence's token mean, then the mean over sequences          count =
///   sequences of the update
///                       (verl: seq-mean-token-mean)
///   bnpo                the mean over the update's tokens (verl: token-mean)              count =
///   trained tokens of the update dapo                their sum over the tokens of the whole
///   sampled batch              count = trained tokens of all samples that were
///                       (arXiv:2503.14476; TRL: num_items_in_batch)                       drawn
///                       together
///   dr_grpo             their sum over a length that is the same for all                  count =
///   sequences of the update,
///                       (arXiv:2503.20783; verl: seq-mean-token-sum-norm)                 scale =
///                       the longest completion allowed
///   seq-mean-token-sum  each sequence's token sum, then the mean over sequences           count =
///   sequences of the update
///                       (LUSPO over sequence ratios)
///   token-sum           their sum                                                         count =
///   1
enum class Aggregation { sequence, token_local, token_global, constant, sequence_sum, token_sum };
constexpr std::array<std::string_view, 6> names_of(Aggregation) {
  return {"grpo", "bnpo", "dapo", "dr_grpo", "seq-mean-token-sum", "token-sum"};
}

constexpr const char* aggregation_doc =
    "how token losses are averaged; grpo: token mean per sequence, then mean over sequences; bnpo: "
    "mean over the tokens of the update; dapo: over the tokens of all samples of the rollout; "
    "dr_grpo: sum per sequence over a constant length; seq-mean-token-sum: mean over sequences of "
    "token sums; token-sum: sum";

/// [T] -> the loss: a scalar. `b.count` and `b.scale` as set_constants() left them.
engine::loss::Expr averaged(Aggregation aggregation, const engine::loss::Expr& losses,
                            const engine::data::Experience& b);

/// Sequences without a trained token (cut ones that are masked, failed rewards) count as sequences
/// of loss 0 (TRL), or not (verl, OpenRLHF).
struct Counting {
  bool empty_sequences = true;
};

/// Sets count and scale of an update to what `aggregation` divides by. `sampled_tokens`: the
/// trained tokens of all samples drawn together; `longest`: the longest completion allowed. An
/// update that trains nothing gets count 1, so that its loss is 0.
void set_constants(engine::data::Experience& update, Aggregation aggregation, double sampled_tokens,
                   double longest, Counting counting = {});

}  // namespace troupe::algorithms
