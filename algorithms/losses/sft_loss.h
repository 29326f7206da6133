// Supervised fine-tuning: the negative log-likelihood of the trained tokens, or its dynamic form
// (Wu et al. 2025, arXiv:2508.05629).
//
//   nll   L = - sum_t log p_t / count
//   dft   L = - sum_t sg(p_t) log p_t / count, where sg() stops the gradient
#pragma once

#include <array>

#include "engine/loss/loss.h"

namespace troupe::algorithms {

using engine::loss::spec_of;

enum class SftLossKind { nll, dft };
constexpr std::array<std::string_view, 2> names_of(SftLossKind) {
  return {"nll", "dft"};
}

/// count: trained tokens of the global batch (sum of the mask). Metrics: nll (mean over trained
/// tokens), entropy if it is given.
struct SftLoss {
  static constexpr std::string_view name = "sft";
  SftLossKind kind = SftLossKind::nll;

  engine::loss::Needs needs() const {
    return {.grad_is_input_independent = kind == SftLossKind::nll};
  }
  static void each_field(auto& self, auto&& field) {
    field("loss", self.kind,
          "token loss: nll, the negative log-likelihood; dft, weighted by the token's own "
          "probability (dynamic fine-tuning)");
  }
  engine::loss::Expr operator()(const engine::loss::TokenStats& now,
                                const engine::data::Experience& b,
                                engine::loss::Report& report) const;
};

}  // namespace troupe::algorithms
