// The section `dpo` of a run file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::launch {

struct DpoConfig {
  double beta = 0.1;
  std::vector<std::string> loss{"sigmoid"};  ///< the names of algorithms::DpoLossKind
  std::vector<double> loss_weights;          ///< of the losses; empty: 1 each
  double label_smoothing = 0;
  std::string divergence = "reverse_kl";
  double divergence_alpha = 0.5;
  double ld_alpha = 1;  ///< 1: tokens of a tail count as others do
  bool weighting = false;
  double discopop_tau = 0.05;
  std::string nll_mean = "token";
  std::string reference;  ///< a model directory; empty: the starting weights
  bool precompute_reference =
      false;  ///< score the data once before the first step and forget the reference model
  std::int64_t sync_every = 0;  ///< steps between two moves of the reference; 0: it stays
  double sync_share = 0.6;      ///< of the policy in the reference's new weights
};

}  // namespace troupe::launch
