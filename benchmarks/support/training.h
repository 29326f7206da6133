// What the programs that train have in common.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "benchmarks/support/clock.h"
#include "benchmarks/support/program.h"
#include "engine/data/experience.h"
#include "engine/train/trainer.h"

namespace troupe::benchmarks {

/// Sequences of random tokens, all but the first of each trained on.
engine::data::Experience random_batch(const ModelShape& shape, std::int64_t sequences,
                                      std::uint64_t seed);

/// Trains a model of the shape.
engine::train::Trainer make_trainer(engine::ops::Device& device, const Options& options);

/// Work of a step in GFLOP: `products` from weights, `attention` as if every token saw its whole
/// sequence.
struct Work {
  double products = 0, attention = 0;
};
/// Of `passes` forward passes over so many tokens; a backward pass counts as two.
Work work_of(const ModelShape& shape, double tokens, int passes);

/// The request to torch_lm.py: its mode, and the unit of its rate, of which a step is `amount`.
struct Rival {
  std::string mode, unit;
  double amount = 0;
};

/// Two steps that are not counted, then rounds of a ceiling and a step. The rival, where --peer was
/// given, has its own between two halves of them, as a machine's rates move within minutes; after
/// them where memory has no room for both. The instruction peak is the best of before, between and
/// after. A share of it above 1.05 is measured once more; the second time it is a Failure.
struct Steps {
  Pairs pairs{1};
  double peak_rss_mib = 0;
  double ratio = 0;
  double peak = 0, peak_ratio = 0;  ///< the instruction peak in GFLOP/s, and the share of it
  std::function<PeerAnswer()> peer = {};
};
Steps time_steps(engine::ops::Device& device, const Options& options, const Work& work,
                 const std::function<void()>& step, const std::optional<Rival>& rival = {});

/// What a program says of steps that do `amount` each, in `unit` a second.
Outcome outcome_of(const Steps& steps, double amount, const std::string& unit);

}  // namespace troupe::benchmarks
