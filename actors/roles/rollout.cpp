#include "actors/roles/rollout.h"

#include <algorithm>

#include "actors/roles/weights.h"
#include "engine/base/text.h"
#include "engine/train/scoring.h"

namespace troupe::actors::roles {

Rollout::Rollout(std::unique_ptr<engine::models::Decoder> model, std::unique_ptr<engine::models::Decoder> shadow,
                 engine::generate::Generator generator, const engine::generate::GeneratorConfig& config)
    : model_(std::move(model)),
      shadow_(std::move(shadow)),
      generator_(std::move(generator)),
      decode_(config.decode),
      precision_(config.precision) {}

Result<Rollout> Rollout::create(std::unique_ptr<engine::models::Decoder> model, std::unique_ptr<engine::models::Decoder> shadow,
                                engine::generate::GeneratorConfig config) {
  auto generator = engine::generate::Generator::create(*model, config);
  if (!generator) return fail(generator.error());
  return Rollout(std::move(model), std::move(shadow), std::move(*generator), config);
}

Result<std::vector<protocol::Drawn>> Rollout::on(protocol::Generate message) {
  std::vector<engine::generate::Request> requests;
  for (auto& draw : message.draws) requests.push_back({requests.size(), std::move(draw.prompt), message.sampling, draw.sample_id});
  auto generations = generator_.generate_all(std::move(requests));
  if (!generations) return fail(generations.error());
  std::vector<protocol::Drawn> drawn;
  for (auto& g : *generations) {
    const std::uint64_t oldest = g.versions.empty() ? version_ : *std::ranges::min_element(g.versions);
    std::string text = g.text.empty() && decode_ ? decode_(g.ids) : std::move(g.text);
    drawn.push_back({g.sample_id, std::move(g.ids), std::move(g.sampling_logp), std::move(text), to_string(g.finish), oldest});
  }
  return drawn;
}

Result<std::vector<float>> Rollout::on(protocol::PrepareWeights message) {
  const auto& weights = message.weights;
  prepared_.reset();
  if (auto good = verify(weights, model_->spec()); !good) return fail(good.error());
  if (weights.version < version_)
    return fail(Errc::bad_input, cat("weights of version ", weights.version, " are older than the present version ", version_));
  auto& parameters = shadow_->parameters();
  parameters.device().upload(parameters.values(), *weights.values);
  prepared_ = weights.version;
  return engine::train::logprobs(*shadow_, probe_batch(weights.probe.tokens), {.precision = precision_});
}

Result<> Rollout::on(protocol::CommitWeights message) {
  if (prepared_ != message.version)
    return fail(Errc::bad_input, cat("weights of version ", message.version, " were not prepared (",
                                     prepared_ ? cat("version ", *prepared_, " was") : "nothing was", ")"));
  auto& device = model_->device();
  device.copy(shadow_->parameters().values(), model_->parameters().values());
  prepared_.reset();
  version_ = message.version;
  generator_.weights_changed(version_);
  return {};
}

}  // namespace troupe::actors::roles
