#include "benchmarks/support/clock.h"

#include <algorithm>

#include "engine/base/check.h"

namespace troupe::benchmarks {

double median(std::vector<double> values) {
  check(!values.empty(), "median of nothing");
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double Pairs::ratio(double amount) const {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < seconds.size(); ++i) ratios.push_back(amount / seconds[i] / ceilings[i]);
  return median(std::move(ratios));
}

}  // namespace troupe::benchmarks
