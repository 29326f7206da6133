#include "actors/roles/scorer.h"

#include "actors/roles/weights.h"
#include "engine/base/text/text.h"
#include "engine/nn/parameters.h"

namespace troupe::actors::roles {
namespace {

tl::unexpected<Error> gone() {
  return fail(Errc::closed, "the model of this scorer has been released; ask before Release");
}

}  // namespace

Scorer::Scorer(std::unique_ptr<engine::models::Decoder> model,
               engine::train::ScoringOptions options, const engine::parallel::Mesh* mesh,
               ScorerSaver save)
    : model_(std::move(model)),
      options_(options),
      mesh_(mesh),
      save_(std::move(save)),
      arriving_(trained_values(model_->spec())) {
}

Result<std::vector<float>> Scorer::on(protocol::Logprobs message) {
  if (!model_) return gone();
  engine::train::ScoringOptions options = options_;
  options.temperature = message.temperature;
  return engine::train::logprobs(*model_, message.batch, options, mesh_ ? &mesh_->dp() : nullptr);
}

Result<std::vector<float>> Scorer::on(protocol::Score message) {
  if (!model_) return gone();
  return engine::train::scores(*model_, message.batch, message.at, message.candidates, options_,
                               mesh_ ? &mesh_->dp() : nullptr);
}

void Scorer::on(protocol::Release) {
  model_.reset();
}

Result<> Scorer::may_move() const {
  if (!model_) return gone();
  if (!save_)
    return fail(Errc::bad_input,
                "this scorer was made to stay as it is: nothing saves it, so it does not follow "
                "the policy");
  return {};
}

Result<> Scorer::on(protocol::LoadWeights message) {
  RETURN_IF_ERROR(may_move());
  return arriving_.load(message.part, {});
}

Result<> Scorer::on(protocol::MapWeights message) {
  RETURN_IF_ERROR(may_move());
  return arriving_.map(message);
}

Result<std::vector<float>> Scorer::on(protocol::PrepareWeights message) {
  RETURN_IF_ERROR(may_move());
  prepared_.reset();
  RETURN_IF_ERROR(complete(message.weights, arriving_));
  RETURN_IF_ERROR(verify(message.weights, model_->spec()));
  if (!shadow_)
    shadow_ = std::make_unique<engine::models::Decoder>(model_->device(), model_->spec(), false,
                                                        model_->part());
  set_values(message.weights.values, *shadow_);
  prepared_ = message.weights.version;
  return engine::train::logprobs(*shadow_, probe_batch(message.weights.probe.tokens),
                                 {.precision = options_.precision});
}

Result<> Scorer::on(protocol::MixWeights message) {
  RETURN_IF_ERROR(may_move());
  if (prepared_ != message.version)
    return fail(Errc::bad_input,
                cat("weights of version ", message.version, " were not prepared (",
                    prepared_ ? cat("version ", *prepared_, " was") : "nothing was", ")"));
  if (!(message.share >= 0 && message.share <= 1))
    return fail(Errc::bad_input,
                cat("mixing: expected a share from 0 to 1, found ", message.share));
  engine::nn::lerp(shadow_->parameters(), message.share, model_->parameters());
  shadow_.reset();
  prepared_.reset();
  return {};
}

Result<std::string> Scorer::on(protocol::Save message) {
  RETURN_IF_ERROR(may_move());
  return save_(message, *model_);
}

}  // namespace troupe::actors::roles
