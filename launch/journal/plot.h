// plot.svg: the run's curves as small multiples, in one file that any browser opens.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"

namespace troupe::launch {

/// One panel: a title and its points (step, value).
struct Curve {
  std::string title;
  std::vector<std::pair<double, double>> points;
};

/// Two panels a row, each with its own scale; the thick line is a moving mean of the thin one.
std::string svg(const std::string& title, const std::vector<Curve>& curves);

/// The curves that a person looks at first, from a run's metrics.jsonl: loss, reward, accuracies,
/// margins, KL, entropy, lengths, gradient norm; those that the run has.
std::vector<Curve> curves_of(const std::string& metrics_file);

/// Draws FOLDER/plot.svg from FOLDER/metrics.jsonl. Errc::io.
Result<> plot_run(const std::string& folder, const std::string& title);

}  // namespace troupe::launch
