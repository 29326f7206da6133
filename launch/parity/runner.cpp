#include "launch/parity/runner.h"

#include <algorithm>
#include <array>
#include <utility>

#include "launch/run/trained_model.h"

namespace troupe::launch::parity {
namespace {

/// The machine's threads, divided by the ranks of this process.
int threads_of(const Settings& settings, const engine::parallel::Mesh* mesh) {
  return mesh == nullptr ? settings.options.model.threads
                         : std::max(1, settings.options.model.threads / mesh->world().size());
}

}  // namespace

PathRunner::PathRunner(const Settings& settings, engine::ops::Precision precision,
                       const engine::parallel::Mesh* mesh)
    : settings_(settings),
      alone_(mesh == nullptr),
      recorder_(std::make_unique<Recorder>(settings.options.locate && mesh == nullptr)) {
  model::ModelOptions options = settings.options.model;
  options.dtype = precision;
  options.gradients = settings.trains();
  options.threads = threads_of(settings, mesh);
  options.observe = {};
  if (alone_)
    options.observe = [this, inner = settings.options.model.observe](
                          std::shared_ptr<engine::ops::Device> device) {
      if (inner) device = inner(std::move(device));
      return std::shared_ptr(engine::ops::make_observed_device(std::move(device), *recorder_));
    };
  const auto part = run::part_of(settings.config.parallel, mesh);
  model_.emplace(value_or_throw(model::Model::load(options, model::NeededHead::language, part)));
  recorder_->attach(model_->decoder());
}

PathInputs PathRunner::inputs(std::span<const Text> texts) {
  return {model_->decoder(), model_->precision(), settings_.sampling(), texts};
}

PathValues PathRunner::run(const Path& path, std::span<const Text> texts,
                           const PathValues* reference) {
  recorder_->take_head_rows();
  recorder_->take_computed_rows();
  PathValues out{path.compute(inputs(texts))};
  if (!alone_) return out;
  out.rows = recorder_->take_head_rows();
  trails_[path.name] = {recorder_->take_computed_rows(), recorder_->score_op()};
  const bool in_order = reference == nullptr || path.trains;
  if (in_order)
    attach_rows(out);
  else
    attach_rows(out, *reference);
  return out;
}

std::optional<Location> PathRunner::locate(const Path& path, std::span<const Text> texts,
                                           std::size_t number, const Difference& found) {
  const std::string_view reference = paths().front().name;
  const Trail &first = trails_[reference], &second = trails_[path.name];
  const std::array suspects{
      Suspect{path.name, second.computed, second.score_op, found.values[1], path.name != "drafts"},
      Suspect{reference, first.computed, first.score_op, found.values[0]},
  };
  // The rotary factors of a generated token can be those of the tokens before it.
  const bool is_prefix = path.samples && spec().keys_depend_on_length();
  const auto length =
      is_prefix ? found.position : static_cast<std::int32_t>(texts[number].tokens.size());
  return parity::locate(inputs(texts), *recorder_, number, found.position, length,
                        std::span(suspects).first(is_prefix ? 1 : 2));
}

}  // namespace troupe::launch::parity
