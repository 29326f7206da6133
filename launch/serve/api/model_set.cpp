#include "launch/serve/api/model_set.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "engine/base/text.h"
#include "launch/commands/model.h"

namespace troupe::launch::api {

using engine::serving::GenerationService;
using engine::serving::PoolingService;
using engine::serving::ServiceCounters;
using engine::serving::ServiceLimits;

namespace {

constexpr std::size_t max_adapters = 64;

void add(const ServiceCounters& from, ServiceCounters& sum) {
  sum.running += from.running;
  sum.waiting += from.waiting;
  sum.pages += from.pages;
  sum.free_pages += from.free_pages;
  sum.idle_pages += from.idle_pages;
  sum.prefix_queries += from.prefix_queries;
  sum.prefix_hits += from.prefix_hits;
  sum.drafted += from.drafted;
  sum.accepted += from.accepted;
  sum.prompt_tokens += from.prompt_tokens;
  sum.generated_tokens += from.generated_tokens;
  sum.preemptions += from.preemptions;
  sum.steps += from.steps;
}

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

ModelSet::ModelSet(ServedModelOptions model, EngineOptions engine)
    : model_(std::move(model)), engine_(engine) {
}

Result<ModelSet::Entry> ModelSet::make_entry(const ServedModelOptions& model,
                                             const std::string& parent) const {
  auto loaded = ServedModel::load(model);
  RETURN_IF_ERROR(loaded);
  Entry entry{std::make_unique<Host>(std::move(*loaded)), nullptr, {}};
  RETURN_IF_ERROR(entry.host->start(engine_, model.model));
  const auto released = std::make_shared<std::promise<void>>();
  entry.released = released->get_future();
  Host& host = *entry.host;
  // The last request may end in a thread of the engine, which cannot destroy the engine.
  entry.served =
      ServedPointer(new Served{&host.model, host.generation.get(), host.pooling.get(), parent},
                    [released](const Served* served) {
                      delete served;
                      released->set_value();
                    });
  return entry;
}

Result<std::unique_ptr<ModelSet>> ModelSet::load(const ServedModelOptions& model,
                                                 const EngineOptions& engine) {
  std::unique_ptr<ModelSet> made(new ModelSet(model, engine));
  auto entry = made->make_entry(model, "");
  RETURN_IF_ERROR(entry);
  made->entries_.push_back(std::move(*entry));
  return made;
}

ModelSet::~ModelSet() {
  stop();
}

ServedPointer ModelSet::first() const {
  const std::lock_guard lock(mutex_);
  return entries_.front().served;
}

ServedPointer ModelSet::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_)
    if (entry.served->model->name() == name) return entry.served;
  return nullptr;
}

std::vector<ServedPointer> ModelSet::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<ServedPointer> out;
  for (const Entry& entry : entries_) out.push_back(entry.served);
  return out;
}

ServiceCounters ModelSet::counters() const {
  ServiceCounters sum;
  for (const ServedPointer& each : all())
    add(each->generation ? each->generation->counters() : each->pooling->counters(), sum);
  return sum;
}

Result<> ModelSet::load_adapter(const std::string& name, const std::string& folder) {
  free_unloaded();
  const ServedPointer base = first();
  if (base->generation == nullptr)
    return fail(Errc::usage, "the model generates no text and is served without adapters");
  if (name.empty() || find(name) != nullptr)
    return fail(Errc::usage, cat("an adapter cannot be called ", quote(name),
                                 name.empty() ? "" : ": another model has this name"));
  if (all().size() > max_adapters)
    return fail(Errc::full, cat("there are ", max_adapters, " adapters; unload one"));
  ServedModelOptions options = model_;
  options.name = name;
  options.model.adapter = folder;
  auto entry = make_entry(options, base->model->name());
  RETURN_IF_ERROR(entry);
  const std::lock_guard lock(mutex_);
  if (paused_) entry->served->generation->pause();
  entries_.push_back(std::move(*entry));
  return {};
}

Result<> ModelSet::unload_adapter(const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(entries_.begin() + 1, entries_.end(), [&](const Entry& each) {
      return each.served->model->name() == name;
    });
    if (found == entries_.end())
      return fail(Errc::not_found, cat("there is no adapter ", quote(name)));
    found->served = nullptr;
    unloaded_.push_back(std::move(*found));
    entries_.erase(found);
  }
  free_unloaded();
  return {};
}

/// Frees the adapters whose requests have ended.
void ModelSet::free_unloaded() {
  std::vector<Entry> freed;  // destroyed without the mutex: their threads end
  const std::lock_guard lock(mutex_);
  for (Entry& each : unloaded_)
    if (each.released.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
      freed.push_back(std::move(each));
  std::erase_if(unloaded_, [](const Entry& each) { return each.host == nullptr; });
}

void ModelSet::set_paused(bool paused) {
  const std::lock_guard lock(mutex_);
  paused_ = paused;
  for (const std::vector<Entry>* entries : {&entries_, &unloaded_}) {
    for (const Entry& entry : *entries) {
      if (entry.host->generation == nullptr) continue;
      if (paused)
        entry.host->generation->pause();
      else
        entry.host->generation->resume();
    }
  }
}

bool ModelSet::paused() const {
  const std::lock_guard lock(mutex_);
  return paused_;
}

Result<std::uint64_t> ModelSet::load_weights(const std::string& folder) {
  Host* host = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (entries_.size() + unloaded_.size() > 1)
      return fail(Errc::usage, "adapters have copies of the model's weights; unload them first");
    host = entries_.front().host.get();
  }
  const auto write = host->model.read_weights(folder);
  RETURN_IF_ERROR(write);
  return host->generation->change_weights(*write);
}

void ModelSet::stop() {
  const std::lock_guard lock(mutex_);
  for (const std::vector<Entry>* entries : {&entries_, &unloaded_})
    for (const Entry& entry : *entries) entry.host->stop();
}

}  // namespace troupe::launch::api
