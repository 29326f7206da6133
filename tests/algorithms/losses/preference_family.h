// Every preference loss with every kind, for the table of the catalog tests.
#pragma once

#include <vector>

#include "algorithms/losses/cpo_loss.h"
#include "algorithms/losses/dpo_loss.h"
#include "algorithms/losses/kto_loss.h"
#include "algorithms/losses/orpo_loss.h"
#include "algorithms/losses/simpo_loss.h"

namespace troupe::test {

template <class Word>
std::vector<Word> all_of() {
  std::vector<Word> words;
  for (std::size_t i = 0; i < names_of(Word{}).size(); ++i) words.push_back(static_cast<Word>(i));
  return words;
}

inline std::vector<algorithms::DpoLoss> dpo_family() {
  using algorithms::DpoLoss;
  using Kind = algorithms::DpoLossKind;
  std::vector<DpoLoss> losses;
  for (const Kind kind : all_of<Kind>()) {
    DpoLoss loss{.kind = {kind}, .beta = 0.3, .label_smoothing = 0.1};
    if (!loss.validate()) loss.label_smoothing = 0;
    losses.push_back(loss);
  }
  for (const auto divergence : all_of<algorithms::DpoDivergence>()) {
    losses.push_back(
        {.kind = {Kind::ipo}, .beta = 0.3, .divergence = divergence, .divergence_alpha = 0.4});
    losses.push_back(
        {.kind = {Kind::robust}, .beta = 0.3, .label_smoothing = 0.1, .divergence = divergence});
  }
  losses.push_back({.kind = {Kind::sigmoid, Kind::bco_pair, Kind::sft}, .weights = {0.8, 0.2, 1}});
  losses.push_back({.kind = {Kind::cdpo, Kind::sft},
                    .weights = {1, 0.5},
                    .label_smoothing = 0.1,
                    .nll_mean = algorithms::NllMean::answer});
  losses.push_back({.kind = {Kind::sigmoid_norm}, .ld_alpha = 0.5});
  losses.push_back({.kind = {Kind::aot}, .ld_alpha = 0});
  return losses;
}

/// Losses with weights that depend on the policy but pass no gradient: they have all properties but
/// that of finite differences.
inline std::vector<algorithms::DpoLoss> weighted_dpo_family() {
  using Kind = algorithms::DpoLossKind;
  return {{.weighting = true}, {.kind = {Kind::hinge, Kind::sft}, .weighting = true}};
}

inline std::vector<engine::loss::AnyLoss> reference_free_family() {
  using namespace algorithms;
  std::vector<engine::loss::AnyLoss> losses{OrpoLoss{}, OrpoLoss{.beta = 0.25}};
  for (const auto kind : all_of<algorithms::SimpoLossKind>()) {
    losses.emplace_back(SimpoLoss{.kind = kind});
    losses.emplace_back(
        SimpoLoss{.kind = kind, .alpha = 0.25, .nll_weight = 0.5, .nll_mean = NllMean::answer});
  }
  losses.emplace_back(SimpoLoss{.label_smoothing = 0.1});
  for (const auto kind : all_of<algorithms::CpoLossKind>())
    losses.emplace_back(CpoLoss{.kind = kind});
  losses.emplace_back(CpoLoss{.kind = algorithms::CpoLossKind::ipo, .alpha = 0.1, .nll_weight = 0});
  return losses;
}

inline std::vector<engine::loss::AnyLoss> kto_family() {
  using namespace algorithms;
  std::vector<engine::loss::AnyLoss> losses;
  for (const auto kind : all_of<algorithms::KtoLossKind>())
    losses.emplace_back(KtoLoss{.kind = kind, .beta = 0.4, .desirable_weight = 1.5});
  return losses;
}

inline std::vector<engine::loss::AnyLoss> preference_family() {
  std::vector<engine::loss::AnyLoss> losses;
  for (const auto& loss : dpo_family()) losses.emplace_back(loss);
  for (const auto& loss : weighted_dpo_family()) losses.emplace_back(loss);
  for (const auto& loss : reference_free_family()) losses.push_back(loss);
  for (const auto& loss : kto_family()) losses.push_back(loss);
  return losses;
}

}  // namespace troupe::test
