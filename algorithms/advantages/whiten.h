// Whitening: scales the numbers of a whole batch to standard deviation 1, usually also to mean 0.
// Pure, in float64.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

namespace troupe::algorithms {

/// The variance divides by n - 1 (TRL, verl, MindSpeed) or by n (OpenRLHF).
enum class Variance { bessel, biased };
constexpr std::array<std::string_view, 2> names_of(Variance) {
  return {"bessel", "biased"};
}

struct Whitening {
  Variance variance = Variance::bessel;
  bool shift_mean = true;  ///< false: keeps the mean (TRL's whitened rewards)
};

/// (x - mean) / sqrt(var + 1e-8) [+ mean] over the elements with a nonzero mask; the others get 0.
/// Equal numbers, or a single one, equal their mean exactly.
std::vector<double> whitened(std::span<const double> x, std::span<const float> mask,
                             const Whitening& how = {});

}  // namespace troupe::algorithms
