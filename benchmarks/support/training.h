// What the programs that train have in common.
#pragma once

#include <functional>

#include "benchmarks/support/clock.h"
#include "benchmarks/support/program.h"
#include "engine/data/experience.h"

namespace troupe::benchmarks {

/// Sequences of random tokens, all but the first of each trained on.
engine::data::Experience random_batch(const ModelShape& shape, std::int64_t sequences, std::uint64_t seed);

/// Work of a step in GFLOP: `products` from weights, `attention` as if every token saw its whole sequence.
struct Work {
  double products = 0, attention = 0;
};

/// Two steps that are not counted, then rounds of a ceiling and a step.
struct Steps {
  Pairs pairs;
  double peak_rss_mib = 0;
  double ratio = 0;
};
Steps time_steps(engine::ops::Device& device, const Options& options, const Work& work, const std::function<void()>& step);

}  // namespace troupe::benchmarks
