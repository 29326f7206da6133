// Whitening: numbers of a whole batch brought to deviation 1, usually to mean 0 as well. Pure, in
// float64.
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
  bool shift_mean = true;  ///< false: the mean stays what it was (TRL's whitened rewards)
};

/// (x - mean) / sqrt(var + 1e-8) [+ mean] over the elements whose mask is not 0; the others get 0.
/// Equal numbers, or a single one, are their own mean exactly.
std::vector<double> whitened(std::span<const double> x, std::span<const float> mask,
                             const Whitening& how = {});

}  // namespace troupe::algorithms
