#include "launch/serve/api/model_set.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "actors/roles/weights.h"
#include "engine/base/text/text.h"

namespace troupe::launch::serve::api {

using actors::group::ReplicatedEngine;
using engine::serving::Engine;
using engine::serving::GenerationThread;
using engine::serving::PoolingService;
using engine::serving::ServiceCounters;

namespace {

constexpr std::size_t max_adapters = 64;

}  // namespace

struct ModelSet::Host {
  Host(LoadedEngine given, std::unique_ptr<ReplicatedEngine> replicated)
      : loaded(std::move(given)),
        model(loaded.model),
        group(replicated.get()),
        engine(std::move(replicated)) {
    if (!engine) engine = std::make_unique<Engine>(model.decoder(), loaded.config);
  }
  Result<> start();
  void stop() const {
    if (generation) generation->stop();
    if (pooling) pooling->stop();
  }

  LoadedEngine loaded;
  ServedModel& model;
  ReplicatedEngine* group;  ///< the engine; nullptr: this rank is alone
  std::unique_ptr<Engine> engine;
  std::unique_ptr<GenerationThread> generation;
  std::unique_ptr<PoolingService> pooling;
};

Result<> ModelSet::Host::start() {
  if (model.pools()) {
    pooling = std::make_unique<PoolingService>(*engine, loaded.limits);
    return {};
  }
  RETURN_IF_ERROR(engine->start());
  generation = std::make_unique<GenerationThread>(*engine, loaded.limits);
  return {};
}

ModelSet::ModelSet(std::unique_ptr<Host> host) : host_(std::move(host)) {
  const ServedModel& model = host_->model;
  served_.push_back(std::make_shared<const Served>(Served{
      model.name(), &model, host_->generation.get(), host_->pooling.get(), std::time(nullptr)}));
}

Result<std::unique_ptr<ModelSet>> ModelSet::load(const ServedModelOptions& model,
                                                 const EngineOptions& engine) {
  auto loaded = LoadedEngine::load(model, engine);
  RETURN_IF_ERROR(loaded);
  return start(std::move(*loaded));
}

Result<std::unique_ptr<ModelSet>> ModelSet::start(LoadedEngine loaded,
                                                  std::unique_ptr<ReplicatedEngine> replicated) {
  auto host = std::make_unique<Host>(std::move(loaded), std::move(replicated));
  RETURN_IF_ERROR(host->start());
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
  auto adapter = read_adapter(folder);
  RETURN_IF_ERROR(adapter);
  Served served = *first();
  served.parent = std::exchange(served.name, name);
  served.created = std::time(nullptr);
  served.adapter = std::move(*adapter);
  served.folder = folder;
  const std::lock_guard lock(mutex_);
  served_.push_back(std::make_shared<const Served>(std::move(served)));
  return {};
}

/// On all ranks.
Result<ModelSet::Adapter> ModelSet::read_adapter(const std::string& folder) {
  ReplicatedEngine* const group = host_->group;
  if (group == nullptr) return host_->model.load_adapter(folder);
  const std::lock_guard lock(reading_);
  RETURN_IF_ERROR(host_->generation->between_steps([&]() -> Result<> {
    group->read_folder(folder, true);
    return {};
  }));
  auto adapter = host_->model.load_adapter(folder);
  RETURN_IF_ERROR(host_->generation->between_steps([&] { return group->use_adapter(adapter); }));
  return adapter;
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
  ReplicatedEngine* const group = host_->group;
  if (group == nullptr) {
    const auto write = host_->model.read_weights(folder);
    RETURN_IF_ERROR(write);
    return host_->generation->change_weights(*write);
  }
  const std::lock_guard lock(reading_);
  RETURN_IF_ERROR(host_->generation->between_steps([&]() -> Result<> {
    group->read_folder(folder, false);
    return {};
  }));
  const auto write = host_->model.read_weights(folder);
  return host_->generation->change_weights([&]() -> Result<> {
    RETURN_IF_ERROR(group->use_weights(write ? Result<>() : fail(write)));
    return (*write)();
  });
}

void ModelSet::adopt_weights(std::uint64_t version, const SharedArray<float>& values,
                             bool between_sequences) {
  auto& decoder = host_->model.decoder();
  host_->generation->adopt_weights(
      version,
      [values, &decoder]() -> Result<> {
        actors::roles::set_values(values, decoder);
        return {};
      },
      between_sequences);
}

void ModelSet::stop() {
  host_->stop();
}

}  // namespace troupe::launch::serve::api
