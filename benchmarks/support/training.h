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
/// Of `passes` forward passes over so many tokens; a backward pass counts as two.
Work work_of(const ModelShape& shape, double tokens, int passes);

/// Two steps that are not counted, then rounds of a ceiling and a step.
struct Steps {
  Pairs pairs{1};
  double peak_rss_mib = 0;
  double ratio = 0;
};
Steps time_steps(engine::ops::Device& device, const Options& options, const Work& work, const std::function<void()>& step);

/// What a program says of steps that do `amount` each, in `unit` a second. `mode` and `peer_unit` are torch_lm.py's.
Outcome outcome_of(const Options& options, const Steps& steps, double amount, const std::string& unit, const std::string& mode,
                   const std::string& peer_unit);

}  // namespace troupe::benchmarks
