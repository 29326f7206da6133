// Masks of tokens by covariance and by entropy.
//
// Covariance: tokens whose log-probability and advantage vary together reduce the entropy most (Cui
// et al. 2025, arXiv:2505.22617, sec. 4.2). Clip-Cov excludes some of them, KL-Cov penalizes the KL
// of those with the greatest covariance. Entropy: only tokens of high entropy are trained on (Wang
// et al. 2025, arXiv:2506.01939).
#pragma once

#include <vector>

#include <span>
#include "engine/data/experience.h"

namespace troupe::algorithms {

/// [T] (A - mean A)(logp - mean logp), means over the trained tokens; 0 elsewhere.
std::vector<double> covariances(const std::vector<double>& advantage,
                                const std::vector<double>& logp, const engine::data::Experience& b);

/// [T] 1 at the fraction `share` of trained tokens (at least one) with the greatest covariances,
/// else 0.
std::vector<double> greatest_covariances(const std::vector<double>& covariance,
                                         const engine::data::Experience& b, double share);

/// [T] 1 at tokens sampled from those whose covariance is between low and high and that `taken` [T]
/// does not select: a fraction `share` of all trained tokens (at least one), or all candidates if
/// there are fewer. The sampling of a token depends only on its sample's id and its position.
std::vector<double> drawn_covariances(const std::vector<double>& covariance,
                                      const std::vector<double>& taken,
                                      const engine::data::Experience& b, double share, double low,
                                      double high);

/// The q-quantile of x, linear between the two nearest (torch.quantile). 0 for no numbers.
double quantile(std::vector<double> x, double q);

/// [T] 1 at the trained tokens whose entropy is at least the (1 - share)-quantile over all trained
/// tokens, else 0 (TRL's top_entropy_quantile). Needs the whole batch.
std::vector<double> top_entropy_mask(std::span<const double> entropy, std::span<const float> mask,
                                     double share);

}  // namespace troupe::algorithms
