// Log-probabilities of the tokens of a batch under a model: what scorers answer, and the first half of a training step.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/data/experience.h"
#include "engine/models/decoder.h"

namespace troupe::engine::train {

/// The rows of a batch whose next token is of interest: hidden row `rows[i]` predicts token `rows[i] + 1`, which is `targets[i]`.
struct HeadRows {
  std::vector<std::int32_t> rows, targets;
};
/// Tokens with a mask other than 0, or all but each sequence's first with `every_token`.
HeadRows head_rows(const data::Experience& batch, bool every_token);

/// Offsets and positions of whole sequences, counted from 0.
ops::Layout layout_of(const data::Experience& batch);

struct ScoringOptions {
  ops::Precision precision = ops::Precision::f32;
  std::int32_t micro_batch_tokens = 8192;
  double temperature = 1;    ///< logits are divided by it
  bool every_token = false;  ///< not only the tokens that the mask names
};

/// [T] log p(token | tokens before it), 0 where not asked for. The numbers do not depend on micro_batch_tokens. The replicas of `dp` share
/// the sequences, and all get all numbers; every rank gives the whole batch.
std::vector<float> logprobs(models::Decoder& decoder, const data::Experience& batch, const ScoringOptions& options,
                            parallel::Communicator* dp = nullptr);

}  // namespace troupe::engine::train
