// Functions shared by the losses over pairs of answers. Sequence 2k is y_w (chosen), 2k+1 is y_l
// (rejected).
#pragma once

#include <array>
#include <string>

#include "engine/loss/loss.h"

namespace troupe::algorithms {

/// Mean of the likelihood term of a preference loss. `token`: over the tokens of all chosen answers
/// (TRL's CPO, ORPO and `sft`, NeMo-RL), so that long answers have more weight. `answer`: over the
/// answers, each the mean over its tokens (MindSpeed's and LLaMA-Factory's pref_ftx).
enum class NllMean { token, answer };
constexpr std::array<std::string_view, 2> names_of(NllMean) {
  return {"token", "answer"};
}

constexpr const char* nll_mean_doc =
    "average the negative log-likelihood over all tokens of the chosen answers (TRL), or over the "
    "answers, each by its token mean (MindSpeed)";

/// Allowed label smoothing: at one half, labels carry no information.
constexpr Range label_noise{0, 0.5, false, true};

/// One number per answer of each pair, [N/2] each.
struct Two {
  engine::loss::Expr chosen, rejected;
};
Two split(const engine::loss::Expr& by_sequence);

/// [N]: the sum of x over each sequence's tokens of nonzero weight; tokens of weight 0 may have any
/// value.
engine::loss::Expr weighted_sum(const engine::loss::Expr& x, const std::vector<float>& weight,
                                const std::vector<std::int32_t>& offsets);
/// [N]: the sum of the weights, at least 1.
engine::loss::Expr weight_of(const std::vector<float>& weight,
                             const std::vector<std::int32_t>& offsets);

/// - (1 - wrong) log sigmoid(margin) - wrong log sigmoid(-margin): cross-entropy if a fraction
/// `wrong` of the labels is assumed to be flipped.
engine::loss::Expr smoothed(const engine::loss::Expr& margin, double wrong);

/// Negative log-likelihood of the chosen answers under `mask`: this batch's part of the mean over
/// the global batch. `token` divides by b.scale, set by set_nll_tokens(); `answer` by b.count, the
/// pairs. Reports nll_loss.
engine::loss::Expr nll_of_chosen(const engine::loss::Expr& logp, const engine::data::Experience& b,
                                 NllMean mean, engine::loss::Report& report);
/// The term of nll_of_chosen in a formula: "+ 0.5 mean over the chosen answers' tokens of - log p";
/// empty if the weight is 0.
std::string nll_formula(double weight, NllMean mean);
/// Sets b.scale to the weight of the chosen sequences' masks (at least 1), over the whole batch:
/// before it is split.
void set_nll_tokens(engine::data::Experience& b);

/// rewards/{chosen,rejected,margins,accuracies} and logps/{chosen,rejected}, means over pairs.
void report_pairs(engine::loss::Report& report, const Two& reward, const Two& logp);

}  // namespace troupe::algorithms
