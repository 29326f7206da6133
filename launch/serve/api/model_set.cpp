#include "launch/serve/api/model_set.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>
#include <utility>

#include "engine/base/text.h"
#include "engine/nn/borrowed_values.h"
#include "engine/nn/logical_tensors.h"
#include "launch/commands/model.h"

namespace troupe::launch::api {

using engine::serving::GenerationService;
using engine::serving::PoolingService;
using engine::serving::ServiceCounters;
using engine::serving::ServiceLimits;

namespace {

constexpr std::size_t max_adapters = 64;

}  // namespace

struct ModelSet::Host {
  explicit Host(ServedModel loaded) : model(std::move(loaded)) {}
  /// `how`: of the model, and of the draft model but for the folder.
  Result<> start(const EngineOptions& options, const ModelOptions& how);
  void stop() const {
    if (generation) generation->stop();
    if (pooling) pooling->stop();
  }

  ServedModel model;
  std::optional<Model> draft;
  std::unique_ptr<GenerationService> generation;
  std::unique_ptr<PoolingService> pooling;
};

Result<> ModelSet::Host::start(const EngineOptions& options, const ModelOptions& how) {
  const ServiceLimits limits{.max_batch = options.max_batch,
                             .max_waiting = static_cast<std::size_t>(options.max_waiting),
                             .deadline = std::chrono::seconds(options.request_seconds)};
  if (model.pools()) {
    pooling = std::make_unique<PoolingService>(model.decoder(), model.precision(), limits);
    return {};
  }
  engine::generate::GeneratorConfig config;
  config.page_size = page_tokens;
  config.pages = static_cast<std::int32_t>((options.cache_tokens + page_tokens - 1) / page_tokens);
  config.longest = model.context();
  config.precision = model.precision();
  config.eos_ids = model.eos_ids();
  config.prefix_cache = !options.no_prefix_cache;
  config.lookup = options.lookup;
  config.weights = options.weights;
  config.draft_tokens = options.draft_tokens;
  if (!options.draft.empty()) {
    ModelOptions of_draft = how;
    of_draft.model = options.draft;
    of_draft.adapter.clear();
    of_draft.overrides = {};
    auto loaded = Model::load(of_draft, NeededHead::language);
    RETURN_IF_ERROR(loaded);
    config.draft = &draft.emplace(std::move(*loaded)).decoder();
  }
  auto started = GenerationService::start(model.decoder(), std::move(config), limits);
  RETURN_IF_ERROR(started);
  generation = std::move(*started);
  return {};
}

ModelSet::ModelSet(std::unique_ptr<Host> host) : host_(std::move(host)) {
  const ServedModel& model = host_->model;
  served_.push_back(std::make_shared<const Served>(Served{
      model.name(), &model, host_->generation.get(), host_->pooling.get(), std::time(nullptr)}));
}

Result<std::unique_ptr<ModelSet>> ModelSet::load(const ServedModelOptions& model,
                                                 const EngineOptions& engine) {
  auto loaded = ServedModel::load(model);
  RETURN_IF_ERROR(loaded);
  auto host = std::make_unique<Host>(std::move(*loaded));
  RETURN_IF_ERROR(host->start(engine, model.model));
  return std::unique_ptr<ModelSet>(new ModelSet(std::move(host)));
}

ModelSet::~ModelSet() {
  stop();
}

ServedPointer ModelSet::first() const {
  const std::lock_guard lock(mutex_);
  return served_.front();
}

ServedPointer ModelSet::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  for (const ServedPointer& each : served_)
    if (each->name == name) return each;
  return nullptr;
}

std::vector<ServedPointer> ModelSet::all() const {
  const std::lock_guard lock(mutex_);
  return served_;
}

ServiceCounters ModelSet::counters() const {
  return host_->generation ? host_->generation->counters() : host_->pooling->counters();
}

Result<> ModelSet::load_adapter(const std::string& name, const std::string& folder) {
  if (host_->generation == nullptr)
    return fail(Errc::usage, "the model generates no text and is served without adapters");
  if (name.empty() || find(name) != nullptr)
    return fail(Errc::usage, cat("an adapter cannot be called ", quote(name),
                                 name.empty() ? "" : ": another model has this name"));
  if (all().size() > max_adapters)
    return fail(Errc::full, cat("there are ", max_adapters, " adapters; unload one"));
  auto adapter = host_->model.load_adapter(folder);
  RETURN_IF_ERROR(adapter);
  Served served = *first();
  served.parent = std::exchange(served.name, name);
  served.created = std::time(nullptr);
  served.adapter = std::move(*adapter);
  const std::lock_guard lock(mutex_);
  served_.push_back(std::make_shared<const Served>(std::move(served)));
  return {};
}

Result<> ModelSet::unload_adapter(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(served_.begin() + 1, served_.end(),
                                  [&](const ServedPointer& each) { return each->name == name; });
  if (found == served_.end())
    return fail(Errc::not_found, cat("there is no adapter ", quote(name)));
  std::erase_if(unloaded_, [](const auto& each) { return each.expired(); });
  unloaded_.push_back(*found);
  served_.erase(found);
  return {};
}

void ModelSet::set_paused(bool paused) {
  if (host_->generation == nullptr) return;
  if (paused)
    host_->generation->pause();
  else
    host_->generation->resume();
}

bool ModelSet::paused() const {
  return host_->generation != nullptr && host_->generation->paused();
}

Result<std::uint64_t> ModelSet::load_weights(const std::string& folder) {
  {
    const std::lock_guard lock(mutex_);
    const auto in_use = [](const auto& each) { return !each.expired(); };
    if (served_.size() > 1 || std::ranges::any_of(unloaded_, in_use))
      return fail(Errc::usage,
                  "adapters belong to the weights that they were trained over; unload them first");
  }
  const auto write = host_->model.read_weights(folder);
  RETURN_IF_ERROR(write);
  return host_->generation->change_weights(*write);
}

void ModelSet::adopt_weights(std::uint64_t version, const SharedArray<float>& values,
                             bool between_sequences) {
  auto& parameters = host_->model.decoder().parameters();
  host_->generation->adopt_weights(
      version,
      [values, &parameters]() -> Result<> {
        if (engine::nn::can_borrow(parameters))
          engine::nn::borrow_values(values, parameters);
        else
          engine::nn::scatter_logical(*values, parameters);
        return {};
      },
      between_sequences);
}

void ModelSet::stop() {
  host_->stop();
}

}  // namespace troupe::launch::api
