// Every policy-gradient loss with every kind, for the tables of the catalog tests.
#pragma once

#include <vector>

#include "algorithms/losses/grpo_loss.h"
#include "algorithms/losses/ppo_loss.h"

namespace troupe::test {

inline std::vector<algorithms::GrpoLoss> grpo_family() {
  using namespace algorithms;
  std::vector<GrpoLoss> losses;
  for (std::size_t i = 0; i < names_of(Aggregation{}).size(); ++i) {
    GrpoLoss loss{
        .surrogate = {.clip_high = 0.28}, .beta = 0.04, .aggregation = static_cast<Aggregation>(i)};
    losses.push_back(loss);
    loss.kl_times_ratio = false;
    loss.entropy_coef = 0.01;
    loss.surrogate.delta = 1.4;
    losses.push_back(loss);
  }
  for (std::size_t i = 0; i < names_of(RatioLevel{}).size(); ++i)
    losses.push_back({.ratio = static_cast<RatioLevel>(i), .beta = 0.04});
  for (std::size_t i = 0; i < names_of(algorithms::SurrogateKind{}).size(); ++i)
    losses.push_back(
        {.surrogate = {.kind = static_cast<algorithms::SurrogateKind>(i), .clip_high = 0.3},
         .aggregation = Aggregation::sequence});
  for (std::size_t i = 0; i < names_of(KlEstimator{}).size(); ++i)
    for (const auto clamp : {KlClamp::none, KlClamp::verl, KlClamp::openrlhf})
      losses.push_back({.beta = 0.1, .kl = static_cast<KlEstimator>(i), .kl_clamp = clamp});
  losses.push_back({.surrogate = {.dual_clip = 1.2}, .log_ratio_limit = 0.4});
  losses.push_back({.top_entropy_quantile = 0.4});
  losses.push_back({.off_policy_mask = 0.05});
  for (const auto over : {Over::token, Over::sequence, Over::geometric})
    losses.push_back({.correction = {.weight = over, .high = 1.3}});
  losses.push_back(
      {.correction = {.weight = Over::token, .outside = Outside::mask, .low = 0.7, .high = 1.3}});
  losses.push_back(
      {.correction = {.filter = FilterOver::geometric, .filter_low = 0.8, .filter_high = 1.1}});
  for (const auto over :
       {FilterOver::token, FilterOver::sequence, FilterOver::geometric, FilterOver::greatest})
    losses.push_back(
        {.correction = {.filter = over,
                        .filter_by = over == FilterOver::token ? FilterBy::k3 : FilterBy::k2,
                        .filter_high = 0.03}});
  losses.push_back(
      {.surrogate = {
           .kind = algorithms::SurrogateKind::dppo_tv, .clip_low = 0.01, .clip_high = 0.02}});
  losses.push_back(
      {.surrogate = {
           .kind = algorithms::SurrogateKind::clip_cov, .cov_ratio = 0.4, .cov_low = 0.01}});
  losses.push_back(
      {.surrogate = {.kind = algorithms::SurrogateKind::kl_cov, .cov_ratio = 0.3, .cov_kl = 0.5}});
  for (const auto proximal : {Proximal::loglinear, Proximal::linear})
    losses.push_back(
        {.correction = {.weight = Over::token, .high = 2}, .proximal = proximal, .version = 4});
  losses.push_back({.surrogate = {.kind = algorithms::SurrogateKind::vespo},
                    .correction = {.weight = Over::sequence}});
  return losses;
}

inline std::vector<engine::loss::AnyLoss> ppo_family() {
  using namespace algorithms;
  std::vector<engine::loss::AnyLoss> losses{
      PpoLoss{}, PpoLoss{.log_ratio_limit = 0.4, .kl_coef = 0.1, .entropy_coef = 0.01}};
  for (std::size_t i = 0; i < names_of(Aggregation{}).size(); ++i)
    losses.emplace_back(
        PpoLoss{.surrogate = {.dual_clip = 1.2}, .aggregation = static_cast<Aggregation>(i)});
  return losses;
}

inline std::vector<engine::loss::AnyLoss> policy_family() {
  std::vector<engine::loss::AnyLoss> losses = ppo_family();
  for (const auto& loss : grpo_family()) losses.emplace_back(loss);
  return losses;
}

}  // namespace troupe::test
