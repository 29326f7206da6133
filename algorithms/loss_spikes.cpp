#include "algorithms/loss_spikes.h"

#include <algorithm>
#include <cmath>

namespace troupe::algorithms {

std::optional<double> LossSpikes::add(double loss) {
  constexpr std::size_t fewest = 20, most = 50;
  if (!std::isfinite(loss)) return std::nullopt;
  const auto count = static_cast<double>(recent_.size());
  double mean = 0, squares = 0;
  for (const double each : recent_) mean += each / count;
  for (const double each : recent_) squares += (each - mean) * (each - mean) / count;
  const double deviation = std::sqrt(squares);
  const double limit = mean + std::max(6 * deviation, 0.1 * std::abs(mean));
  const bool known = recent_.size() >= fewest;
  const bool begins = known && !inside_ && loss > limit;
  if (begins) inside_ = true;
  if (inside_ && loss <= mean + std::max(2 * deviation, 0.03 * std::abs(mean))) inside_ = false;
  // A spike counts as its limit, so that it hides no further one.
  recent_.push_back(known ? std::min(loss, limit) : loss);
  if (recent_.size() > most) recent_.erase(recent_.begin());
  return begins ? std::optional(mean) : std::nullopt;
}

}  // namespace troupe::algorithms
