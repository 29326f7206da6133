// Process reward models: every step of a solution is classified as correct or not where it ends
// (Lightman et al. 2023, arXiv:2305.20050), by the cross-entropy of the step's class under the
// scores at that token (not at the token before it).
//
//   token-class   p = softmax over the score head's C labels, at the last token of a step's
//                 separator: TRL's PRMTrainer
//   placeholder   p = softmax of the language head over the reward tokens or the whole vocabulary,
//                 at a placeholder token after each step: Math-Shepherd (arXiv:2312.08935) as
//                 trained by MindSpeed
//   L = - sum over labelled tokens of log p(class) / count
#pragma once

#include "engine/loss/loss.h"

namespace troupe::algorithms {

using engine::loss::spec_of;

/// count: labelled tokens of the global batch (mask 1 and a class in Experience::classes). Metric:
/// accuracy, the fraction of labelled tokens whose class has the greatest score.
struct PrmLoss {
  static constexpr std::string_view name = "prm";

  /// Reward tokens of a placeholder model, as token ids; class c is reward_tokens[c]. Empty:
  /// classes of a score head.
  std::vector<std::int32_t> reward_tokens;
  /// Placeholder models: softmax over the whole vocabulary, as in MindSpeed without reward tokens.
  bool whole_vocabulary = false;
  /// Computes log-softmax and gradients in float32, as torch and therefore TRL's PRMTrainer do:
  /// 1 - p has few significant digits near p = 1.
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
