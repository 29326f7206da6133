// Which tokens' updates bring the entropy down most: those whose log-probability and advantage vary
// together (Cui et al. 2025, arXiv:2505.22617, sec. 4.2). Clip-Cov leaves some of them out, KL-Cov
// holds the foremost of them to the policy that sampled.
#pragma once

#include <vector>

#include <span>
#include "engine/data/experience.h"

namespace troupe::algorithms {

/// [T] (A - mean A)(logp - mean logp), means over the trained tokens; 0 elsewhere.
std::vector<double> covariances(const std::vector<double>& advantage,
                                const std::vector<double>& logp, const engine::data::Experience& b);

/// [T] 1 at the share of trained tokens (at least one) with the greatest covariances, else 0.
std::vector<double> greatest_covariances(const std::vector<double>& covariance,
                                         const engine::data::Experience& b, double share);

/// [T] 1 at tokens drawn from those whose covariance lies between low and high and that `taken` [T]
/// does not name: as many as `share` of all trained tokens (at least one), or all there are. A
/// token's draw hangs on its sample's id and its place alone.
std::vector<double> drawn_covariances(const std::vector<double>& covariance,
                                      const std::vector<double>& taken,
                                      const engine::data::Experience& b, double share, double low,
                                      double high);

// Only the tokens where the model hesitates: the forking tokens of an answer carry the learning
// (Wang et al. 2025, arXiv:2506.01939).
/// The q-quantile of x, linear between the two nearest (torch.quantile). 0 for no numbers.
double quantile(std::vector<double> x, double q);

/// [T] 1 at the trained tokens whose entropy is at least the (1 - share)-quantile of all trained
/// tokens' entropies, else 0 (TRL's top_entropy_quantile). The whole batch must be at hand.
std::vector<double> top_entropy_mask(std::span<const double> entropy, std::span<const float> mask,
                                     double share);

}  // namespace troupe::algorithms
