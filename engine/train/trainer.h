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
#include "engine/nn/arena_shards.h"
#include "engine/nn/parameters.h"
#include "engine/optim/adamw.h"
#include "engine/parallel/grid.h"
#include "engine/train/expert_training.h"
#include "engine/train/loss_scale.h"
#include "engine/train/micro_batch_pass.h"
#include "engine/train/replica_exchange.h"
#include "engine/train/scoring.h"
#include "engine/train/trainer_state.h"

namespace troupe::engine::train {

/// Names of the trained tensors whose gradient is exactly 0 on this rank. `shards`: the replicas
/// that each have a part of the summed gradients (nullptr: this rank has all); collective.
std::vector<std::string> zero_gradient_names(const nn::Parameters& parameters,
                                             const nn::ArenaShards* shards = nullptr);

/// Warning before update `step` (from 1): at the first and the tenth update, names the tensors
/// without a gradient where others have one; otherwise "". The first update skips adapters: one of
/// their two factors starts at 0, and so does the gradient of the other.
std::string zero_gradient_warning(const nn::Parameters& parameters, std::int64_t step,
                                  const nn::ArenaShards* shards = nullptr);

/// The keys of `train` that determine updates are in each_...field() and nowhere else.
struct TrainerOptions {
  ops::Precision dtype = ops::Precision::f32;
  std::int32_t micro_batch_tokens = 8192;  ///< tokens per pass; affects memory, not results
  optim::AdamWConfig optimizer;
  /// Affects memory, not results; the defaults cost about a hundredth of a step's time.
  nn::Recomputed recomputed = {.kinds = {nn::Recompute::activation, nn::Recompute::norm}};
  /// Compute the rows of a shared prefix once (shared_prefixes). Gradients are then the same sums
  /// in another order, which depends on the micro-batches; without it no bit does.
  bool share_prefixes = false;
  std::uint64_t adapter_seed = 0;  ///< of its dropout
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
  /// Of the model that is created for the trainer, and has no adapter.
  nn::StateType gradients = nn::StateType::f32;
  nn::StateType moments = nn::StateType::f32;
  ExpertOptions experts;            ///< of a mixture of experts
  LossScaleConfig loss_scale = {};  ///< with dtype f16

  nn::ValueTypes types() const { return {stored(optimizer.weights), stored(gradients)}; }

  static void each_pass_field(auto& self, auto&& field) {
    field("micro_batch_tokens", self.micro_batch_tokens, Range{1, 1 << 30},
          "tokens per forward and backward pass; trades memory for speed, never changes the loss");
    nn::Recomputed::each_field(self.recomputed, field);
    field("offload", self.offload,
          "directory on a disk, created if it does not exist, to which the saved activations are "
          "written until the backward pass reads them; empty: they stay in memory");
    field("attention_dropout", self.attention_dropout, from_0_below_1,
          "probability that a weight of attention is dropped in training passes");
    field("hidden_dropout", self.hidden_dropout, from_0_below_1,
          "probability that a value of the embeddings, or of what attention and MLP add to the "
          "hidden states, is dropped in training passes");
    field("share_prefixes", self.share_prefixes,
          "compute common prefixes of neighbouring sequences once (the prompt of a group or a "
          "pair), for less time and memory; losses keep their bits, gradients are summed in "
          "another order that depends on train.micro_batch_tokens");
    ExpertOptions::each_field(self.experts, field);
  }
  static void each_type_field(auto& self, auto&& field) {
    field("dtype", self.dtype,
          "data type of matrix products; sums are f32, and so are weights, gradients and optimizer "
          "state by default; f16: with train.loss_scale");
    LossScaleConfig::each_field(self.loss_scale, field);
    field("weights", self.optimizer.weights,
          "type of the trained weights; bf16: 2 bytes, rounded stochastically after each update; "
          "split: bf16 and a 16-bit residual, together the 4 bytes of f32, with train.dtype: bf16");
    field("gradients", self.gradients,
          "type of the gradients; bf16: 2 bytes, rounded to the nearest value after each "
          "micro-batch; an adapter's are f32");
    field("moments", self.moments,
          "type of AdamW's two moments; bf16: half of their memory, rounded stochastically after "
          "each update");
    field("ema_decay", self.optimizer.ema_decay, from_0_below_1,
          "keep an exponential moving average of the weights, of which each update keeps this "
          "share; saved as the model directory ema/ of a checkpoint; 0: none");
  }
};

/// Result of a forward and backward pass over a whole batch.
struct BatchLoss {
  double loss = 0;
  std::int64_t tokens = 0;  ///< tokens that went through the network
  loss::Report report;
  ExpertTraining::Loads experts;  ///< of a mixture of experts
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

  /// What a checkpoint stores besides weights, moments and their average.
  TrainerState state() const;
  /// Restores it after weights and moments. `average` [parameters.trained().count()], in f32: that
  /// of a checkpoint; absent: an average that is kept starts from the restored weights.
  void load_state(const TrainerState& state, const Tensor& average = {});

  /// With dtype f16; nullptr: losses are not scaled.
  LossScale* loss_scale() { return loss_scale_ ? &*loss_scale_ : nullptr; }
  /// Number of updates over the whole run, without those that were skipped.
  std::uint64_t version() const { return static_cast<std::uint64_t>(optimizer_.steps()); }

 private:
  BatchLoss run_batch(const data::Experience& batch, const loss::AnyLoss& loss);
  BatchLoss run_passes(const data::Experience& batch, const loss::AnyLoss& loss);
  BatchLoss one_pass(const data::Experience& batch, const loss::AnyLoss& loss);
  BatchLoss two_passes(const data::Experience& batch, const loss::AnyLoss& loss);
  /// Starts the sums of the routers' loads, and completes them before the backward passes that need
  /// them, by a forward pass where several passes make them up.
  void begin_loads(const data::Experience& batch);
  void complete_loads_of(const std::vector<data::Experience>& parts);
  /// `counts`: the forward passes add to the loads.
  PassOptions passes(bool counts) const;
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
  std::optional<ExpertTraining> experts_;
  std::uint64_t passes_ = 0;  ///< since the last update
};

}  // namespace troupe::engine::train
