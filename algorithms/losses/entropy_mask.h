// Only the tokens where the model hesitates: the forking tokens of an answer carry the learning
// (Wang et al. 2025, arXiv:2506.01939).
#pragma once

#include <span>
#include <vector>

namespace troupe::algorithms {

/// The q-quantile of x, linear between the two nearest (torch.quantile). 0 for no numbers.
double quantile(std::vector<double> x, double q);

/// [T] 1 at the trained tokens whose entropy is at least the (1 - share)-quantile of all trained
/// tokens' entropies, else 0 (TRL's top_entropy_quantile). The whole batch must be at hand.
std::vector<double> top_entropy_mask(std::span<const double> entropy, std::span<const float> mask,
                                     double share);

}  // namespace troupe::algorithms
