// plot.svg: the curves of a run as small multiples.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/base/files/output_folder.h"

namespace troupe::launch::journal {

/// A line of points (step, value). One without a name is a metric of training, drawn thin with its
/// moving mean; one with a name is an evaluation.
struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
  bool noisy = true;  ///< has a moving mean
};
struct Panel {
  std::string title;
  std::vector<Curve> lines;
};

/// Two panels per row, each with its own scale. Empty lines and panels are left out.
std::string svg(const std::string& title, const std::vector<Panel>& panels);

/// The main metrics of a run's metrics.jsonl, each with its evaluation: reward or loss, accuracies,
/// margins, KL, entropy, lengths, clipping, the critic's loss, gradient norm, learning rate.
std::vector<Panel> panels_of(const std::string& metrics_file);

/// Draws FOLDER/plot.svg from FOLDER/metrics.jsonl. Errc::io.
Result<> plot_run(const OutputFolder& folder, const std::string& title);

}  // namespace troupe::launch::journal
