// Pretraining: the mean negative log-likelihood of all tokens of documents, with batches that may
// grow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "algorithms/batch_rampup.h"
#include "algorithms/losses/sft_loss.h"
#include "algorithms/method.h"

namespace troupe::algorithms {

/// Where the batches come from: token files or rows of text.
class PretrainingBatches {
 public:
  virtual ~PretrainingBatches() = default;
  /// The next `size` samples, fewer at the end; nullopt after it. Throws Failure.
  virtual std::optional<engine::data::Experience> next(std::int64_t size) = 0;
  /// The position for a checkpoint.
  virtual Json state() const = 0;
  /// Passes over the data so far; nullopt where it is not known.
  virtual std::optional<double> epoch() const = 0;
};

struct PretrainConfig {
  static constexpr std::string_view name = "pretrain";
  using Losses = LossList<SftLoss>;

  std::string split = "969, 30, 1";
  bool reset_documents = false;
  bool mask_end_of_document = false;
  std::int64_t eval_batches = 100;

  static void each_field(auto& self, auto&& field) {
    field("split", self.split,
          "weights of training, validation and test data of token files (Megatron's --split)");
    field("reset_documents", self.reset_documents,
          "positions and attention restart behind each end token (Megatron's --reset-position-ids "
          "with --reset-attention-mask); false: a sample is one stream of tokens");
    field("mask_end_of_document", self.mask_end_of_document,
          "no loss on the token behind an end token (Megatron's --eod-mask-loss)");
    field("eval_batches", self.eval_batches, Range{1, 1 << 30},
          "batches of validation data in each evaluation (Megatron's --eval-iters)");
  }
};

/// `full` samples a batch, fewer while `rampup` lasts.
struct PretrainingPlan {
  std::int64_t full = 1;
  BatchRampup rampup;
};

/// Each step: an update on the next samples, and an evaluation when one is due: eval/loss and
/// eval/perplexity, its exponential.
Task<void> pretrain(Cluster& c, PretrainingBatches& data, TrainingPlan plan,
                    PretrainingPlan batches, HeldOut held_out);

}  // namespace troupe::algorithms
