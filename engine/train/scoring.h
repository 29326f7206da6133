// What a model says of the tokens of a batch: what scorers answer, and the first half of a training
// step that needs the whole batch.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/data/experience.h"
#include "engine/models/decoder.h"
#include "engine/train/output_head.h"

namespace troupe::engine::train {

/// Offsets and positions of whole sequences, counted from 0.
ops::Layout layout_of(const data::Experience& batch);

/// The draws of a part of a batch under this key, by the numbers of its sequences.
std::optional<nn::Dropout> draws_of(const data::Experience& part, std::optional<std::uint64_t> key);

struct ScoringOptions {
  ops::Precision precision = ops::Precision::f32;
  std::int32_t micro_batch_tokens = 8192;
  double temperature = 1;    ///< logits are divided by it; read_all() takes that of the needs
  bool every_token = false;  ///< not only the tokens that the mask names
  std::optional<std::uint64_t>
      dropout;  ///< the key of a training pass's draws; absent: nothing is let go
};

/// Forward passes alone. The numbers do not depend on micro_batch_tokens. The replicas of `dp`
/// share the sequences, and all get all numbers; every rank gives the whole batch.
Readings read_all(models::Decoder& decoder, const data::Experience& batch, const loss::Needs& needs,
                  const ScoringOptions& options, parallel::Communicator* dp = nullptr);

/// [T] log p(token | tokens before it), 0 where not asked for.
std::vector<float> logprobs(models::Decoder& decoder, const data::Experience& batch,
                            const ScoringOptions& options, parallel::Communicator* dp = nullptr);

/// [T, C] by token: what the score head says, or the log-probabilities of the candidates under the
/// language head where some are given; 0 where not asked for.
std::vector<float> scores(models::Decoder& decoder, const data::Experience& batch, loss::ReadAt at,
                          const std::vector<std::int32_t>& candidates,
                          const ScoringOptions& options, parallel::Communicator* dp = nullptr);

}  // namespace troupe::engine::train
