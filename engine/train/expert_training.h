// ExpertTraining: what balances the routers of a mixture of experts while it is trained: auxiliary
// losses, z-loss, the update of choice biases, and capacities; and metrics of their load.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/json/fields.h"
#include "engine/base/json/ranges.h"
#include "engine/data/experience.h"
#include "engine/loss/report.h"
#include "engine/models/decoder.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::train {

/// Definitions of load-balancing losses, over different sets of tokens. With f the counts of
/// favourites and P the sums of shares (ops::RouterSums) over T tokens:
enum class BalanceLoss : std::uint8_t {
  /// all_layers with a coefficient of the options or, where config.json has output_router_logits,
  /// in
  /// methods without rollouts, its own; otherwise none
  config,
  /// E / T^2 sum f P over the tokens of all layers together (transformers)
  all_layers,
  /// E / (k T^2) sum f P of each layer, over the batch (Megatron-LM's global_aux_loss)
  batch,
  /// the same, mean over the micro-batches (Megatron-LM's aux_loss)
  micro_batch,
  /// the same, mean over the sequences (Megatron-LM's seq_aux_loss, DeepSeek-V3)
  sequence
};
constexpr std::array<std::string_view, 5> names_of(BalanceLoss) {
  return {"config", "all_layers", "batch", "micro_batch", "sequence"};
}

/// Keys `train.experts.*`.
struct ExpertOptions {
  std::vector<BalanceLoss> losses = {BalanceLoss::config};
  std::vector<double> coefficients;
  double z_loss = 0;
  double bias_rate = 0;
  double capacity = 0;
  ops::DropPolicy drop = ops::DropPolicy::weight;
  bool samples = false;  ///< not a key: a method with rollouts, in which `config` is none

  static void each_field(auto& self, auto&& field) {
    field(
        "experts.losses", self.losses,
        "load-balancing losses of a mixture of experts (docs/mixtures.md); config: all_layers, if "
        "train.experts.coefficients has a coefficient or config.json has output_router_logits, "
        "which grpo and ppo do not use; []: none");
    field("experts.coefficients", self.coefficients,
          "coefficients of train.experts.losses, one for each; []: router_aux_loss_coef of "
          "config.json");
    field("experts.z_loss", self.z_loss, at_least_0,
          "coefficient of the mean squared logsumexp of the routers' logits; 0: no z-loss");
    field("experts.bias_rate", self.bias_rate, at_least_0,
          "change of the choice bias of each expert after an update, upwards where it had fewer "
          "tokens than the mean (DeepSeek-V3: 0.001); 0: biases stay");
    field("experts.capacity", self.capacity, at_least_0,
          "tokens of an expert in a micro-batch at most, as a multiple of an even share: others "
          "are dropped, in training passes only; 0: none is dropped");
    field("experts.drop", self.drop,
          "which tokens an expert keeps: those of largest weight, or the first ones");
  }
};

struct BalanceTerm {
  BalanceLoss loss;
  double coefficient;
};
/// The losses of a run, without those of coefficient 0.
std::vector<BalanceTerm> balance_terms(const models::ExpertsSpec& spec,
                                       const ExpertOptions& options);

/// Errc::usage for options that contradict each other, the model or the trainer's options:
/// `exact_weights`: trained weights are in f32; `share_prefixes`: TrainerOptions::share_prefixes.
Result<> check_expert_options(const models::DecoderSpec& spec, const ExpertOptions& options,
                              bool exact_weights, bool share_prefixes);

class ExpertTraining {
 public:
  /// `model` has experts. `dp` (nullptr: one) are the replicas.
  ExpertTraining(models::Decoder& model, const ExpertOptions& options, parallel::Communicator* dp);

  /// Whether backward passes run for gradients of the routers alone.
  bool adds_gradients() const { return !terms_.empty() || options_.z_loss > 0; }
  /// Whether backward passes need the sums of all micro-batches, so that a forward pass over all of
  /// them comes first. `parts`: micro-batches of this replica.
  bool needs_sums_first(std::size_t parts) const;

  /// Whether they need them at all.
  bool needs_sums_of_all() const { return has(BalanceLoss::all_layers) || has(BalanceLoss::batch); }

  /// Starts a batch. `batch`: that of all replicas; `parts`: as above; `scale`: of the gradients.
  /// Collective.
  void begin(const data::Experience& batch, std::size_t parts, double scale);
  /// The sums of the batch are complete on this rank. Collective.
  void sums_complete();
  /// Metrics of the batch: equal on all ranks.
  void report(loss::Report& report) const;
  /// Ends the batch: later passes are not those of training.
  void end();
  /// Changes the choice biases after an update; false: it was skipped.
  void update_biases(bool updated);

  struct Loads {
    std::vector<std::int64_t> layers;  ///< with experts
    std::vector<std::int64_t> counts;  ///< [layers, E] choices in the last batch
  };
  Loads loads() const;

 private:
  double coefficient(BalanceLoss loss) const;
  bool has(BalanceLoss loss) const { return coefficient(loss) != 0; }
  const ops::Router& router() const { return model_.spec().experts->router; }
  std::size_t experts() const { return static_cast<std::size_t>(router().experts); }
  ops::RouterSums joined() const;
  void share(parallel::Communicator& group);
  void set_slopes();
  /// Mean of a value over the layers.
  template <class Of>
  double layer_mean(Of of) const;

  models::Decoder& model_;
  ExpertOptions options_;
  parallel::Communicator* dp_;
  std::vector<BalanceTerm> terms_;
  std::vector<std::size_t> layers_;  ///< those with experts, of all stages
  double tokens_ = 0, sequences_ = 0, micro_batches_ = 0, scale_ = 1;
  std::vector<std::vector<std::int64_t>> since_update_;  ///< [layers_] choices
};

}  // namespace troupe::engine::train
