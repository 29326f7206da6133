// Forward passes over a batch: log-probabilities and scores, for scorers and for losses that need
// the whole batch.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/data/experience.h"
#include "engine/models/decoder.h"
#include "engine/train/output_head.h"

namespace troupe::engine::train {

/// Layout of whole sequences: offsets, and positions from 0.
ops::Layout layout_of(const data::Experience& batch);

/// Dropout of a training pass.
struct PassDropout {
  std::uint64_t key = 0;  ///< of the adapters' dropout in this pass
  double hidden = 0, attention = 0;
  std::uint64_t hidden_key = 0, attention_key = 0;
};

/// [T] ids of rows (nn::Dropout), by the numbers of the sequences. Positions are those of `layout`,
/// whose sequences are those of the part or some of their rows.
std::vector<std::uint64_t> row_ids(const data::Experience& part, const ops::Layout& layout);

struct ScoringOptions {
  ops::Precision precision = ops::Precision::f32;
  std::int32_t micro_batch_tokens = 8192;
  double temperature = 1;    ///< divides the logits; head_outputs() uses that of the needs
  bool every_token = false;  ///< false: only tokens that the mask selects
  std::optional<PassDropout> dropout;  ///< of a training pass; absent: none
  bool counts_routes = false;          ///< of a training pass: PassOptions::counts_routes
};

/// Outputs of the heads, by forward passes only. The bits do not depend on micro_batch_tokens. The
/// replicas of `dp` partition the sequences; every rank passes the whole batch and gets all
/// outputs.
HeadOutputs head_outputs(models::Decoder& decoder, const data::Experience& batch,
                         const loss::Needs& needs, const ScoringOptions& options,
                         parallel::Communicator* dp = nullptr);

/// [T] log p(token | tokens before it), 0 where not requested.
std::vector<float> logprobs(models::Decoder& decoder, const data::Experience& batch,
                            const ScoringOptions& options, parallel::Communicator* dp = nullptr);

/// [T, C]: outputs of the score head or, where `candidates` are given, their log-probabilities
/// under the language head; 0 where not requested.
std::vector<float> scores(models::Decoder& decoder, const data::Experience& batch, loss::ReadAt at,
                          const std::vector<std::int32_t>& candidates,
                          const ScoringOptions& options, parallel::Communicator* dp = nullptr);

}  // namespace troupe::engine::train
