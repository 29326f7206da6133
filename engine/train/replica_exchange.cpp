#include "engine/train/replica_exchange.h"

#include <algorithm>
#include <string>

#include "engine/base/text/text.h"
#include "engine/nn/gradients.h"

namespace troupe::engine::train {

ReplicaExchange::ReplicaExchange(models::Decoder& model, parallel::Communicator* replicas,
                                 const nn::ArenaShards* shards, Overlap overlap,
                                 std::int64_t bucket)
    : model_(model), overlap_(replicas ? overlap : Overlap::none) {
  if (shards == nullptr && overlap_ == Overlap::all) overlap_ = Overlap::gradients;
  if (replicas) sums_.emplace(model.parameters().trained(), *replicas, shards, bucket);
  if (overlap_ == Overlap::none) return;
  find_layers();
  if (overlap_ == Overlap::all)
    hooks_.before_forward = [this](std::size_t block) {
      weights_.finish_until(read_until_[block]);
    };
  last_hooks_ = hooks_;
  last_hooks_.after_backward = [this](std::size_t block) {
    model_.device().synchronize();
    sums_->start_from(complete_from_[block]);
  };
}

void ReplicaExchange::find_layers() {
  const nn::Parameters& trained = model_.parameters().trained();
  const std::vector<std::int64_t> layers = model_.stage().layers();
  std::vector<std::string> complete{"model.norm.", "lm_head.", "score."};
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    complete.push_back(cat("model.layers.", *layer, "."));
    complete_from_.push_back(nn::complete_from(trained, complete));
  }
  std::ranges::reverse(complete_from_);
  std::int64_t until = 0;
  for (const std::int64_t layer : layers) {
    const std::string prefix = cat("model.layers.", layer, ".");
    std::int64_t at = 0;
    for (const auto& parameter : trained.all()) {
      at += parameter.value.count();
      if (parameter.name.starts_with(prefix) || parameter.name.starts_with("model.embed"))
        until = std::max(until, at);
    }
    read_until_.push_back(until);
  }
  read_until_.push_back(trained.count());  // of the final norm and the head
}

void ReplicaExchange::passes_ended() {
  weights_.finish();  // a rank without a sequence has run none
  if (overlap_ == Overlap::none || complete_from_.empty()) return;
  model_.device().synchronize();
  sums_->start_from(complete_from_.front());
}

/// Sums of parts that ranks of other groups have: the two copies of a tied table, shared heads.
void ReplicaExchange::sum_parts() {
  nn::Parameters& parameters = model_.parameters();
  const auto& spec = model_.spec();
  const models::PipelineStage& stage = model_.stage();
  const nn::Parameter* table = parameters.find("model.embed_tokens.weight");
  if (model_.pp() != nullptr && spec.tied && spec.labels == 0 && (stage.first() || stage.last()) &&
      table->grad)
    nn::sum_tied_gradient(model_.device(), *table, *model_.pp_tensors());
  nn::all_reduce_gradients(parameters, model_.tp(), nullptr);
}

void ReplicaExchange::sum_gradients() {
  sum_parts();
  if (sums_) sums_->finish();
}

}  // namespace troupe::engine::train
