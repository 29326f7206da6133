// Trainer: one model with its gradients and optimizer; the interface of pretraining, fine-tuning
// and RL: forward_backward accumulates gradients, update applies them, logprobs only evaluates.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/data/experience.h"
#include "engine/loss/loss.h"
#include "engine/models/decoder.h"
#include "engine/optim/adamw.h"
#include "engine/parallel/grid.h"
#include "engine/train/loss_scale.h"
#include "engine/train/micro_batch_pass.h"
#include "engine/train/replica_exchange.h"
#include "engine/train/scoring.h"

namespace troupe::engine::train {

struct TrainerOptions {
  ops::Precision precision = ops::Precision::f32;
  std::int32_t micro_batch_tokens = 8192;  ///< tokens per pass; affects memory, not results
  optim::AdamWConfig optimizer;
  /// Affects memory, not results; the defaults cost little time.
  nn::Recomputed recomputed = {.activation = true, .norm = true};
  /// Compute the rows of a shared prefix once (shared_prefixes.h). Gradients are then the same sums
  /// in another order, which depends on the micro-batches; without it no bit does.
  bool share_prefixes = false;
  std::uint64_t seed = 0;  ///< of the adapter's dropout
  /// Probabilities that weights of attention and values of the hidden states (nn/hidden_dropout.h)
  /// are dropped in the passes of forward_backward(); keyed by optimizer.seed.
  double attention_dropout = 0, hidden_dropout = 0;
  /// Directory for saved activations (nn/offload.h): affects memory, not results; empty: they stay
  /// in memory.
  std::string offload;
  /// Divide the optimizer state over the replicas (ZeRO-1): affects memory, not results.
  bool shard_optimizer = false;
  /// Exchange gradients and weights of replicas while passes run: affects time, not results. Each
  /// forward_backward() is then followed by update().
  Overlap overlap = Overlap::none;
  /// Values that replicas exchange in one operation: affects time and memory, not results.
  std::int64_t bucket_values = nn::ArenaShards::bucket_values;
  /// Store the moments in bf16 (optim::AdamW).
  bool bf16_moments = false;
  /// Of the losses, with precision f16.
  LossScaleConfig loss_scale = {};
};

/// Result of a forward and backward pass over a whole batch.
struct BatchLoss {
  double loss = 0;
  std::int64_t tokens = 0;  ///< tokens that went through the network
  loss::Report report;
};

class Trainer {
 public:
  /// `model` has gradients and loaded weights. `mesh` (nullptr: one rank) outlives this; `model`
  /// was created with its tp and pp. Every method is collective: all ranks pass the same arguments
  /// and get the same result.
  Trainer(std::unique_ptr<models::Decoder> model, TrainerOptions options,
          const parallel::Mesh* mesh = nullptr);
  ~Trainer();

  models::Decoder& model() {
    exchange_.finish_weights();
    return *model_;
  }
  optim::AdamW& optimizer() { return optimizer_; }

  /// Splits this replica's partition of the batch into micro-batches and accumulates the gradient
  /// of the loss, whose constants are those of the whole batch. Returns values of the whole batch,
  /// equal on all replicas; update() sums their gradients. No bit depends on micro_batch_tokens
  /// (decisions/0019). A loss that needs the whole batch at
  /// once costs an extra forward pass, unless one micro-batch holds the batch.
  BatchLoss forward_backward(const data::Experience& batch, const loss::AnyLoss& loss);
  /// Clips, applies and clears the gradients. With a gradient that is not finite no weight changes:
  /// Errc::bad_input, naming a tensor; or, with a loss scale, Report::skipped.
  Result<optim::AdamW::Report> update(double learning_rate);
  /// [T] log-probabilities of the tokens that the mask selects, under softmax(logits /
  /// temperature). `base`: those of the base model without its adapter, the model that training
  /// started from.
  std::vector<float> logprobs(const data::Experience& batch, double temperature, bool base = false);
  /// [T, C] scores of the tokens that the mask selects (train::scores()).
  std::vector<float> scores(const data::Experience& batch, loss::ReadAt at,
                            const std::vector<std::int32_t>& candidates);

  /// Of precision f16; nullptr: losses are not scaled.
  LossScale* loss_scale() { return loss_scale_ ? &*loss_scale_ : nullptr; }
  /// Number of updates over the whole run, without those that were skipped.
  std::uint64_t version() const { return static_cast<std::uint64_t>(optimizer_.steps()); }

 private:
  BatchLoss run_batch(const data::Experience& batch, const loss::AnyLoss& loss);
  BatchLoss one_pass(const data::Experience& batch, const loss::AnyLoss& loss);
  BatchLoss two_passes(const data::Experience& batch, const loss::AnyLoss& loss);
  PassOptions passes() const;
  ScoringOptions scoring(double temperature) const;
  std::optional<PassDropout> dropout() const;
  /// Gradients of the scaled loss.
  loss::ValueAndGrads scaled(loss::ValueAndGrads grads) const;

  std::unique_ptr<models::Decoder> model_;
  TrainerOptions options_;
  parallel::Communicator* dp_;  ///< divides the sequences of a batch; nullptr: it is not divided
  optim::AdamW optimizer_;
  ReplicaExchange exchange_;
  std::optional<LossScale> loss_scale_;
  std::unique_ptr<nn::Offload> offload_;
  std::uint64_t passes_ = 0;  ///< since the last update
};

}  // namespace troupe::engine::train
