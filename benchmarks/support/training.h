// Shared code of the training benchmarks.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "benchmarks/support/clock.h"
#include "benchmarks/support/program.h"
#include "engine/data/experience.h"
#include "engine/train/trainer.h"

namespace troupe::benchmarks {

/// Sequences of random tokens; all tokens but the first of each are trained on.
engine::data::Experience random_batch(const ModelShape& shape, std::int64_t sequences,
                                      std::uint64_t seed);

/// Trains a model of the shape.
engine::train::Trainer make_trainer(engine::ops::Device& device, const Options& options);

/// Work of a step in GFLOP: `products` from weights, `attention` as if every token saw its whole
/// sequence.
struct Work {
  double products = 0, attention = 0;
};
/// Returns the work of `passes` forward passes over `tokens` tokens; a backward pass counts as two.
Work work_of(const ModelShape& shape, double tokens, int passes);

/// A request to torch_lm.py: its mode, the unit of its rate, and the amount of one step in that
/// unit.
struct Rival {
  std::string mode, unit;
  double amount = 0;
};

/// Result of two warm-up steps and rounds of a ceiling and a step. With --peer, the peer runs
/// between two halves of the rounds, because the speed of a machine drifts within minutes; after
/// them if memory does not suffice for both. The instruction peak is the best of before, between
/// and after. If the share of it exceeds 1.05, the rounds are repeated; the second time it is a
/// Failure.
struct Steps {
  Pairs pairs{1};
  double peak_rss_mib = 0;
  double ratio = 0;
  double peak = 0, peak_ratio = 0;  ///< the instruction peak in GFLOP/s, and the share of it
  std::function<PeerAnswer()> peer = {};
};
Steps time_steps(engine::ops::Device& device, const Options& options, const Work& work,
                 const std::function<void()>& step, const std::optional<Rival>& rival = {});

/// Describes the result of steps that each process `amount`, in `unit` per second.
Outcome outcome_of(const Steps& steps, double amount, const std::string& unit);

}  // namespace troupe::benchmarks
