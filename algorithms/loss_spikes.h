// LossSpikes: steps whose loss is far above those before.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::algorithms {

/// A spike is a loss more than six standard deviations and a tenth of the mean above the mean of
/// the steps before: of the last 50, at least 20. It lasts until a loss is within two standard
/// deviations of the mean.
class LossSpikes {
 public:
  /// The mean of the losses before, if a spike begins with `loss`. A loss that is not finite is
  /// left out.
  std::optional<double> add(double loss);

 private:
  std::vector<double> recent_;
  bool inside_ = false;
};

}  // namespace troupe::algorithms
