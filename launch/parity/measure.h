// The comparison of all paths with the weights of one model in one precision.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/parallel/grid.h"
#include "launch/parity/compare.h"
#include "launch/parity/runner.h"
#include "launch/parity/settings.h"

namespace troupe::launch::parity {

struct Report {
  engine::ops::Precision dtype = engine::ops::Precision::f32;
  std::string architecture;
  std::int64_t texts = 0, tokens = 0;
  std::vector<PairResult> pairs;

  bool kept() const;
};

/// What one rank computed: the texts, and their values by `score`, for the comparison with a grid.
struct Measured {
  Report report;
  std::vector<Text> texts;
  PathValues scores;
};

/// Compares the paths on one rank, for at most 8192 tokens of texts at a time.
Measured measure_alone(const Settings& settings, engine::ops::Precision precision);

/// Compares the paths of a grid with its `score`, and that with the one of a single rank; adds the
/// pairs to `measured`, on the root. Collective over the ranks of the mesh. The texts are the
/// root's.
void measure_grid(const Settings& settings, engine::ops::Precision precision,
                  const engine::parallel::Mesh& mesh, Measured& measured);

/// One report for each of the dtypes; the ranks of the grid are threads. Throws Failure.
std::vector<Report> measure(const Settings& settings);

}  // namespace troupe::launch::parity
