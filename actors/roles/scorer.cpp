#include "actors/roles/scorer.h"

namespace troupe::actors::roles {
namespace {

tl::unexpected<Error> gone() { return fail(Errc::closed, "this scorer has let its model go; ask before Release"); }

}  // namespace

Scorer::Scorer(std::unique_ptr<engine::models::Decoder> model, engine::train::ScoringOptions options, const engine::parallel::Mesh* mesh)
    : model_(std::move(model)), options_(options), mesh_(mesh) {}

Result<std::vector<float>> Scorer::on(protocol::Logprobs message) {
  if (!model_) return gone();
  engine::train::ScoringOptions options = options_;
  options.temperature = message.temperature;
  return engine::train::logprobs(*model_, message.batch, options, mesh_ ? &mesh_->dp() : nullptr);
}

Result<std::vector<float>> Scorer::on(protocol::Score message) {
  if (!model_) return gone();
  return engine::train::scores(*model_, message.batch, message.at, message.candidates, options_, mesh_ ? &mesh_->dp() : nullptr);
}

void Scorer::on(protocol::Release) { model_.reset(); }

}  // namespace troupe::actors::roles
