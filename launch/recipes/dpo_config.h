// The section `dpo` of a run file.
#pragma once

#include <string>

namespace troupe::launch {

struct DpoConfig {
  double beta = 0.1;
  std::string loss = "sigmoid";  ///< the names of algorithms::DpoLoss::Kind
  double label_smoothing = 0;
  double discopop_tau = 0.05;
  std::string reference;              ///< a model directory; empty: the starting weights
  bool precompute_reference = false;  ///< score the data once before the first step and forget the reference model
};

}  // namespace troupe::launch
