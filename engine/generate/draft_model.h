// DraftModel: a small model that proposes the next tokens of sequences of a larger one (Leviathan
// et al. 2023, arXiv:2211.17192), which accepts exactly those that it samples itself.
//
// Its keys and values are in a cache of its own with the same pages. It computes every row that the
// larger model computes, so a page that sequences share is complete for both.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/generate/row_batch.h"
#include "engine/generate/scheduler.h"
#include "engine/generate/sequence_state.h"
#include "engine/models/packed_weights.h"

namespace troupe::engine::generate {

class DraftModel {
 public:
  /// Errc::usage for a model that cannot draft for `target`: another vocabulary, fewer positions,
  /// or keys that depend on the length of a sequence.
  static Result<> check_model(const models::DecoderSpec& draft, const models::DecoderSpec& target);

  /// A cache for the pages of `sizes`. The model must outlive this. `count`: tokens of a draft.
  DraftModel(models::Decoder& model, ops::Precision precision, const SchedulerConfig& sizes,
             std::int32_t count);

  /// Computes the rows of the plan and adds rows of drafts to it, whose tokens are in
  /// SequenceState::proposed. Draws with the target's random numbers. Returns the number of drafted
  /// tokens.
  std::int64_t propose(ScheduledStep& plan, Scheduler& scheduler, SequenceStates& sequences);

 private:
  struct Draft {
    Work* work = nullptr;
    SequenceState* state = nullptr;
    std::int32_t row = 0;  // of the last token in the latest pass
  };
  RowBatch rows_of(ScheduledStep& plan, SequenceStates& sequences,
                   std::vector<Draft>& drafts) const;
  void sample(const RowBatch& batch, std::vector<Draft>& drafts);

  models::Decoder& model_;
  ops::Precision precision_;
  std::int32_t page_size_, count_;
  nn::KvCache cache_;
  models::PackedWeights packed_;
};

}  // namespace troupe::engine::generate
