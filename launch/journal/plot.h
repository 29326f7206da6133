// plot.svg: the curves of a run as small multiples.
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

/// Two panels per row, each with its own scale; the thick line is a moving mean of the thin one.
std::string svg(const std::string& title, const std::vector<Curve>& curves);

/// The main curves of a run's metrics.jsonl, if present: loss, reward, accuracies, margins, KL,
/// entropy, lengths, gradient norm.
std::vector<Curve> curves_of(const std::string& metrics_file);

/// Draws FOLDER/plot.svg from FOLDER/metrics.jsonl. Errc::io.
Result<> plot_run(const std::string& folder, const std::string& title);

}  // namespace troupe::launch
