// Calibration: whether a reward model is right as often as it says it is.
#pragma once

#include <span>
#include <vector>

namespace troupe::algorithms {

/// Pairs of which the model is about equally sure.
struct ConfidenceBin {
  double low = 0, high = 0;  ///< of the confidence
  std::size_t pairs = 0;
  double confidence = 0, accuracy = 0;  ///< means over the pairs
};

struct Calibration {
  double accuracy = 0;  ///< pairs with a margin above 0
  double error = 0;     ///< expected calibration error: sum over bins of (pairs in it / all pairs)
                        ///< |accuracy - confidence|
  std::vector<ConfidenceBin> bins;
};

/// Of margins s_w - s_l. Under the Bradley-Terry model the answer with the higher score is the
/// better one with probability sigmoid(|margin|): the confidence, from 0.5 to 1, which is cut into
/// `bins` bins of equal width (Naeini et al. 2015; Guo et al. 2017, arXiv:1706.04599, eq. 3). A
/// margin of 0 counts as wrong.
Calibration calibration(std::span<const double> margins, int bins);

}  // namespace troupe::algorithms
