#include "benchmarks/support/clock.h"

#include <algorithm>
#include <ctime>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::benchmarks {

double processor_seconds() {
  std::timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  check(!values.empty(), "median of nothing");
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

void Pairs::add(double ceiling, double seconds, bool disturbed) {
  ceilings_.push_back(ceiling);
  seconds_.push_back(seconds);
  disturbed_.push_back(disturbed);
  undisturbed_ += disturbed ? 0 : 1;
}

double Pairs::middle(const std::vector<double>& of_rounds) const {
  check(of_rounds.size() == disturbed_.size(), "Pairs: a figure for each round");
  std::vector<double> counted;
  for (std::size_t i = 0; i < of_rounds.size(); ++i)
    if (!enough() || !disturbed_[i]) counted.push_back(of_rounds[i]);
  return median(std::move(counted));
}

double Pairs::ratio(double amount) const {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < seconds_.size(); ++i)
    ratios.push_back(amount / seconds_[i] / ceilings_[i]);
  return middle(ratios);
}

std::string Pairs::describe() const {
  const auto rounds = std::ssize(seconds_), others = rounds - undisturbed_;
  if (rounds == 1) return others == 0 ? "one round" : "one round, which was disturbed";
  if (others == 0) return cat("median of ", rounds, " rounds");
  if (!enough()) return cat("median of ", rounds, " rounds, of which ", others, " were disturbed");
  return cat("median of ", undisturbed_, " rounds, ", others, " that were disturbed not counted");
}

}  // namespace troupe::benchmarks
