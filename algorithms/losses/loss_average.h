// The average of the token losses of a batch: over its tokens, or over the means of micro-batches.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/json/fields.h"
#include "engine/data/experience.h"

namespace troupe::algorithms {

enum class LossMean { tokens, micro_batches };
constexpr std::array<std::string_view, 2> names_of(LossMean) {
  return {"tokens", "micro_batches"};
}

/// With micro_batches: the mean over the micro-batches of the mean over the trained tokens of each,
/// as Megatron-LM without --calculate-per-token-loss and MindSpeed-LLM average (2.2.0,
/// sft_trainer.py). A micro-batch is a number of consecutive rows of the batch, on whatever rank
/// and in whatever pass they are computed; one without a trained token has the loss 0.
struct LossAverage {
  LossMean mean = LossMean::tokens;
  std::int64_t micro_batch_rows = 1;  ///< the last micro-batch of a batch may have fewer

  static void each_field(auto& self, auto&& field) {
    field("loss_average", self.mean,
          "average of the losses of a batch; tokens: over its trained tokens; micro_batches: over "
          "the means of groups of train.micro_batch_rows rows, in which tokens of short answers "
          "weigh more (Megatron-LM without --calculate-per-token-loss)");
    field("micro_batch_rows", self.micro_batch_rows, Range{1, 1 << 20},
          "with train.loss_average: micro_batches, consecutive rows of the batch whose tokens are "
          "averaged together (Megatron-LM's --micro-batch-size)");
  }

  /// A line about it for the formula of a loss; "" with tokens.
  std::string formula() const;
  /// Scales the weights of the tokens so that sum(mask * loss) / count is the average. Their sum
  /// stays `count`, unless a micro-batch has no trained token. A row is one sequence, or with
  /// `of_samples` all consecutive sequences of one sample_id.
  void apply(engine::data::Experience& batch, bool of_samples = false) const;
};

}  // namespace troupe::algorithms
