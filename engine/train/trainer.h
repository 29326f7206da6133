// Trainer: one model with its gradients and optimizer. The one seam that pretraining, fine-tuning
// and RL share: forward_backward adds gradients, update applies them, logprobs only looks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/data/experience.h"
#include "engine/loss/loss.h"
#include "engine/models/decoder.h"
#include "engine/optim/adamw.h"
#include "engine/parallel/grid.h"
#include "engine/train/scoring.h"

namespace troupe::engine::train {

struct TrainerOptions {
  ops::Precision precision = ops::Precision::f32;
  std::int32_t micro_batch_tokens =
      8192;  ///< tokens of one forward and backward pass; memory, not results, depends on it
  optim::AdamWConfig optimizer;
  nn::Recomputed recomputed = {
      .activation = true,
      .norm = true};  ///< memory, not results, depends on it; these two cost little
  /// Rows of sequences that begin alike are computed once (shared_prefixes.h). Gradients are then
  /// the same sums in another order, which depends on the micro-batches; without it no bit does.
  bool share_prefixes = false;
  std::uint64_t seed = 0;  ///< of the adapter's dropout
};

/// What a forward and backward pass over a whole batch found.
struct BatchLoss {
  double loss = 0;
  std::int64_t tokens = 0;  ///< that went through the network
  loss::Report report;
};

class Trainer {
 public:
  /// `model` has gradients and loaded weights. `mesh` (nullptr: one rank) outlives this; `model`
  /// was made with its tp. Every method is then collective: each rank gives the same arguments and
  /// gets the same answer.
  Trainer(std::unique_ptr<models::Decoder> model, TrainerOptions options,
          const parallel::Mesh* mesh = nullptr);

  models::Decoder& model() { return *model_; }
  optim::AdamW& optimizer() { return optimizer_; }

  /// Takes this replica's share of the batch, splits it into micro-batches and adds the gradient of
  /// the loss, whose constants are those of the whole batch. What it returns is of the whole batch,
  /// the same on every replica; their gradients are summed in update(). A loss that needs the whole
  /// batch at once costs a forward pass more, unless one micro-batch has it all.
  BatchLoss forward_backward(const data::Experience& batch, const loss::AnyLoss& loss);
  /// Clips, applies and clears the gradients. A gradient that is not finite changes no weight:
  /// Errc::bad_input, naming a tensor.
  Result<optim::AdamW::Report> update(double learning_rate);
  /// [T] log-probabilities of the tokens that the mask names, under softmax(logits / temperature).
  /// `base`: those of the base without its adapter, which is the model that training started from.
  std::vector<float> logprobs(const data::Experience& batch, double temperature, bool base = false);
  /// [T, C] scores of the tokens that the mask names, as train::scores() gives them.
  std::vector<float> scores(const data::Experience& batch, loss::ReadAt at,
                            const std::vector<std::int32_t>& candidates);

  /// Counts updates over the whole run.
  std::uint64_t version() const { return static_cast<std::uint64_t>(optimizer_.steps()); }

 private:
  /// What a loss says of a micro-batch, once the model has read it.
  using Judge = std::function<loss::Evaluation(const Readings& readings)>;
  BatchLoss of_all(const data::Experience& batch, const loss::AnyLoss& loss);
  /// `known`: what it will say of the derivatives, where that is known beforehand.
  void run_micro_batch(const data::Experience& part, const loss::Needs& needs,
                       const std::optional<loss::Evaluation>& known, const Judge& judge);
  BatchLoss in_one_pass(const data::Experience& batch, const loss::AnyLoss& loss);
  BatchLoss in_two_passes(const data::Experience& batch, const loss::AnyLoss& loss);
  ScoringOptions scoring(double temperature) const;
  std::optional<std::uint64_t> dropout_key() const;

  std::unique_ptr<models::Decoder> model_;
  TrainerOptions options_;
  parallel::Communicator* dp_;  ///< nullptr: no other replica
  optim::AdamW optimizer_;
  std::uint64_t passes_ = 0;  ///< since the last update
};

}  // namespace troupe::engine::train
