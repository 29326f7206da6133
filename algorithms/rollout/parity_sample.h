// The rollouts' log-probabilities of tokens of the vocabulary beside those of the policy, at a
// sample of the places of a batch.
#pragma once

#include "algorithms/rollout/samples.h"

namespace troupe::algorithms {

/// Appends sampling/vocabulary_difference/{mean,max} to the metrics of `samples`: the distance of
/// the log-probabilities, at the sampling temperature over the whole vocabulary, of up to four
/// tokens that are drawn from the vocabulary for the batch, at each place of a sampled token that
/// options.parity_sample draws. The rollouts generate these tokens one step after the tokens before
/// the place; the policy scores them with the forward pass of training. 0 exactly where both have
/// the same weights, grid and precision. The draws depend on the seed and the sample ids alone.
/// Nothing where no place is drawn. To be called before the update, while the rollouts have the
/// policy's weights. Needs options.vocabulary.
Task<void> add_vocabulary_difference(Cluster& c, RolloutBatch& samples,
                                     const RolloutOptions& options);

}  // namespace troupe::algorithms
