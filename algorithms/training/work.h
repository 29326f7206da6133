// Work of a step: what was processed, by which models. The journal derives throughput and FLOPs
// from it.
#pragma once

#include <optional>

#include "engine/data/experience.h"

namespace troupe::algorithms {

/// Sums over the sequences of a batch.
struct SequenceSizes {
  double sequences = 0;
  double tokens = 0;  ///< sum of the lengths
  double squares =
      0;  ///< sum of the squared lengths, to which the work of attention is proportional
};
SequenceSizes sizes_of(const engine::data::Experience& batch);

/// The model of a pass. A rollout has the policy's.
enum class PassModel { policy, reference, critic, reward };

/// A batch that a model processed: forward, or forward and backward.
struct ModelPass {
  PassModel model = PassModel::policy;
  bool backward = false;
  SequenceSizes sizes;
};

/// What a step adds to the throughput.
struct Processed {
  double tokens = 0;            ///< of prompts and completions, trained on or not
  double samples = 0;           ///< rows, pairs or completions
  std::optional<double> epoch;  ///< passes over the data so far; nothing where it is not known
};
/// Rows of a batch, a pair as one, and their tokens.
Processed processed_of(const engine::data::Experience& batch, std::optional<double> epoch);

}  // namespace troupe::algorithms
