// Which tokens' updates bring the entropy down most: those whose log-probability and advantage vary
// together (Cui et al. 2025, arXiv:2505.22617, sec. 4.2). Clip-Cov leaves some of them out, KL-Cov
// holds the foremost of them to the policy that sampled.
#pragma once

#include <vector>

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

}  // namespace troupe::algorithms
