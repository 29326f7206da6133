// Supervised fine-tuning: the negative log-likelihood of the trained tokens, or its dynamic form
// (Wu et al. 2025, arXiv:2508.05629).
//
//   nll   L = - sum_t log p_t / count
//   dft   L = - sum_t sg(p_t) log p_t / count          sg: no gradient; probable tokens weigh more
#pragma once

#include <array>

#include "engine/loss/loss.h"

namespace troupe::algorithms {

using engine::loss::spec_of;

/// count: the trained tokens of the global batch (sum of mask). Metrics: nll (mean over trained
/// tokens; entropy when it is given).
struct SftLoss {
  static constexpr std::string_view name = "sft";
  enum class Kind { nll, dft };
  friend constexpr std::array<std::string_view, 2> names_of(Kind) { return {"nll", "dft"}; }

  Kind kind = Kind::nll;

  engine::loss::Needs needs() const { return {.constant_slopes = kind == Kind::nll}; }
  static void each_field(auto& self, auto&& field) { field("kind", self.kind); }
  engine::loss::Expr operator()(const engine::loss::TokenStats& now,
                                const engine::data::Experience& b,
                                engine::loss::Report& report) const;
};

}  // namespace troupe::algorithms
