#include "algorithms/calibration.h"

#include <algorithm>
#include <cmath>

#include "engine/base/check.h"

namespace troupe::algorithms {

Calibration calibration(std::span<const double> margins, int bins) {
  check(bins > 0 && !margins.empty(), "calibration: one bin and one pair at least");
  Calibration out;
  for (int i = 0; i < bins; ++i)
    out.bins.push_back({0.5 + 0.5 * i / bins, 0.5 + 0.5 * (i + 1) / bins});
  for (const double margin : margins) {
    const double confidence = 1 / (1 + std::exp(-std::abs(margin)));
    const auto place = static_cast<std::size_t>(
        std::min(static_cast<double>(bins) - 1, std::floor((confidence - 0.5) * 2 * bins)));
    ConfidenceBin& bin = out.bins[place];
    ++bin.pairs, bin.confidence += confidence, bin.accuracy += margin > 0;
    out.accuracy += margin > 0;
  }
  const auto all = static_cast<double>(margins.size());
  out.accuracy /= all;
  for (ConfidenceBin& bin : out.bins) {
    if (bin.pairs == 0) continue;
    const auto count = static_cast<double>(bin.pairs);
    bin.confidence /= count, bin.accuracy /= count;
    out.error += count / all * std::abs(bin.accuracy - bin.confidence);
  }
  return out;
}

}  // namespace troupe::algorithms
