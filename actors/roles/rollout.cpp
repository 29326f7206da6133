#include "actors/roles/rollout.h"

#include <algorithm>

#include "engine/base/text.h"

namespace troupe::actors::roles {

Rollout::Rollout(std::unique_ptr<engine::models::Decoder> model, engine::generate::Generator generator,
                 engine::generate::TextDecoder decode)
    : model_(std::move(model)), generator_(std::move(generator)), decode_(std::move(decode)) {}

Result<Rollout> Rollout::create(std::unique_ptr<engine::models::Decoder> model, engine::generate::GeneratorConfig config) {
  auto decode = config.decode;
  auto generator = engine::generate::Generator::create(*model, std::move(config));
  if (!generator) return fail(generator.error());
  return Rollout(std::move(model), std::move(*generator), std::move(decode));
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

Result<> Rollout::on(protocol::LoadWeights message) {
  const auto& weights = message.weights;
  auto& parameters = model_->parameters();
  if (!weights.values || static_cast<std::int64_t>(weights.values->size()) != parameters.count())
    return fail(Errc::bad_input, cat("weights of version ", weights.version, " do not fit: expected ", parameters.count(),
                                     " values, found ", weights.values ? weights.values->size() : 0));
  if (weights.version < version_)
    return fail(Errc::bad_input, cat("weights of version ", weights.version, " are older than the present version ", version_));
  parameters.device().upload(parameters.values(), *weights.values);
  version_ = weights.version;
  generator_.weights_changed(version_);
  return {};
}

}  // namespace troupe::actors::roles
