// ModelSet: the models of a server: one model with the engine that computes its answers, and
// adapters of it, which use its weights and its engine and come and go while requests run.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/shared_array.h"
#include "engine/serving/generation_service.h"
#include "engine/serving/pooling_service.h"
#include "launch/serve/api/served_model.h"

namespace troupe::launch::api {

constexpr int page_tokens = 16;  ///< of the KV cache

/// Of the model and all adapters together.
struct EngineOptions {
  std::int32_t max_batch = 64;         ///< sequences generated at the same time
  std::int64_t max_waiting = 1024;     ///< sequences that wait
  std::int64_t cache_tokens = 0;       ///< tokens in the KV cache; 0: GeneratorConfig's default
  std::int64_t request_seconds = 600;  ///< a request that takes longer is given up
  bool no_prefix_cache = false;        ///< every prompt is computed anew
  std::int32_t lookup = 0;             ///< draft tokens of prompt lookup; 0: none
  std::string draft;                   ///< folder of a draft model; "": none
  std::int32_t draft_tokens = 4;       ///< of the draft model
  /// Whether sequences are generated from the weights or from an 8-bit copy of them.
  engine::models::WeightFormat weights = engine::models::WeightFormat::full;
};

/// What a name in requests stands for: a model and its engine, which is one of the services, or an
/// adapter of that model. Valid while the shared_ptr is held that ModelSet gave.
struct Served {
  std::string name;
  const ServedModel* model = nullptr;
  engine::serving::GenerationService* generation = nullptr;
  engine::serving::PoolingService* pooling = nullptr;
  std::int64_t created = 0;  ///< Unix time of its load
  std::string parent = {};   ///< of an adapter: the name of its model
  std::shared_ptr<const engine::nn::LoraModel> adapter = nullptr;
};
using ServedPointer = std::shared_ptr<const Served>;

/// Every function may be called from any thread.
class ModelSet {
 public:
  /// Loads the model and starts its engine. Errors of ServedModel::load().
  static Result<std::unique_ptr<ModelSet>> load(const ServedModelOptions& model,
                                                const EngineOptions& engine);
  ~ModelSet();  ///< stop(); no ServedPointer may be left
  ModelSet(const ModelSet&) = delete;
  ModelSet& operator=(const ModelSet&) = delete;

  ServedPointer first() const;  ///< the model
  /// nullptr: no model has the name.
  ServedPointer find(const std::string& name) const;
  std::vector<ServedPointer> all() const;  ///< the model first
  engine::serving::ServiceCounters counters() const;

  /// Adds an adapter of the model. Errc::usage for a name in use and for a model that generates no
  /// text, full beyond 64 adapters; errors of ServedModel::load_adapter().
  Result<> load_adapter(const std::string& name, const std::string& folder);
  /// New requests no longer find the adapter; those in progress end as usual, and then its memory
  /// is free. Errc::not_found.
  Result<> unload_adapter(const std::string& name);
  /// Pauses or resumes generation.
  void set_paused(bool paused);
  bool paused() const;
  /// GenerationService::change_weights() with the weights of a folder. Errors of
  /// ServedModel::read_weights(); Errc::usage while there are adapters, which belong to the weights
  /// that they were trained over.
  Result<std::uint64_t> load_weights(const std::string& folder);
  /// GenerationService::adopt_weights() of the model, without adapters, with the values of all
  /// logical tensors (engine/nn/logical_tensors.h), which are read where they lie.
  void adopt_weights(std::uint64_t version, const SharedArray<float>& values,
                     bool between_sequences);
  /// Ends all requests with Errc::closed.
  void stop();

 private:
  struct Host;
  explicit ModelSet(std::unique_ptr<Host> host);

  const std::unique_ptr<Host> host_;
  mutable std::mutex mutex_;           // of what follows
  std::vector<ServedPointer> served_;  // the model first
  std::vector<std::weak_ptr<const Served>> unloaded_;
};

}  // namespace troupe::launch::api
