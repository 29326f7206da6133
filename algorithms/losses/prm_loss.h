// Process reward models: every step of a solution is judged right or wrong where it ends (Lightman
// et al. 2023, arXiv:2305.20050), by the cross-entropy of the step's class under the scores read at
// that very token, not at the one before it.
//
//   token-class   p = softmax of the score head's C labels: TRL's PRMTrainer (label at the last
//   token of a step's separator) placeholder   p = softmax of the language head, held to the reward
//   tokens or over the whole vocabulary: Math-Shepherd
//                 (arXiv:2312.08935) as MindSpeed trains it, at a placeholder token behind each
//                 step
//   L = - sum over judged tokens of log p(class) / count
#pragma once

#include "engine/loss/loss.h"

namespace troupe::algorithms {

using engine::loss::spec_of;

/// count: the judged tokens of the global batch (mask 1 and a class in Experience::classes).
/// Metric: accuracy, the share of judged tokens whose class has the greatest score.
struct PrmLoss {
  static constexpr std::string_view name = "prm";

  /// The placeholder's candidates, as token ids; class c is reward_tokens[c]. Empty: a score head's
  /// classes.
  std::vector<std::int32_t> reward_tokens;
  /// Of a placeholder: the softmax is over the whole vocabulary, as MindSpeed has it where it was
  /// given no reward tokens.
  bool whole_vocabulary = false;
  /// Log-softmax and slopes are computed in float32, as torch and so TRL's PRMTrainer do: 1 - p
  /// keeps few digits where p is near 1.
  bool float32 = false;

  static void each_field(auto& self, auto&& field) {
    field("reward_tokens", self.reward_tokens);
    field("whole_vocabulary", self.whole_vocabulary,
          "placeholder: softmax over the whole vocabulary instead of the reward tokens");
    field("float32", self.float32,
          "compute the loss and its gradient in float32, as torch and TRL do; false: float64");
  }
  engine::loss::Needs needs() const {
    return {.logp = false,
            .scores = true,
            .scores_at = engine::loss::ReadAt::token,
            .candidates = reward_tokens};
  }
  Result<> validate() const;
  engine::loss::Expr operator()(const engine::loss::TokenStats& now,
                                const engine::data::Experience& b,
                                engine::loss::Report& report) const;
};

}  // namespace troupe::algorithms
