// ModelSet: the models of a server: one model with the engine that computes its answers, and
// adapters of it, which use its weights and its engine and come and go while requests run.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/group/replicated_engine.h"
#include "engine/base/errors/error.h"
#include "engine/base/memory/shared_array.h"
#include "engine/serving/generation_thread.h"
#include "engine/serving/pooling_service.h"
#include "launch/serve/api/loaded_engine.h"

namespace troupe::launch::serve::api {

/// What a name in requests stands for: a model and its engine, which is one of the services, or an
/// adapter of that model. Valid while the shared_ptr is held that ModelSet gave.
struct Served {
  std::string name;
  const ServedModel* model = nullptr;
  engine::serving::GenerationThread* generation = nullptr;
  engine::serving::PoolingService* pooling = nullptr;
  std::int64_t created = 0;  ///< Unix time of its load
  std::string parent = {};   ///< of an adapter: the name of its model
  std::shared_ptr<const engine::nn::LoraModel> adapter = nullptr;
  std::string folder = {};  ///< of an adapter
};
using ServedPointer = std::shared_ptr<const Served>;

/// Every function may be called from any thread.
class ModelSet {
 public:
  /// Loads the model and starts its engine. Errors of LoadedEngine::load() and start().
  static Result<std::unique_ptr<ModelSet>> load(const ServedModelOptions& model,
                                                const EngineOptions& engine);
  /// `replicated`: the engine where other ranks share the model; nullptr: there are none. Errors of
  /// Engine::start().
  static Result<std::unique_ptr<ModelSet>> start(
      LoadedEngine loaded, std::unique_ptr<actors::group::ReplicatedEngine> replicated = nullptr);
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
  /// GenerationThread::change_weights() with the weights of a folder. Errors of
  /// ServedModel::read_weights(); Errc::usage while there are adapters, which belong to the weights
  /// that they were trained over.
  Result<std::uint64_t> load_weights(const std::string& folder);
  /// GenerationThread::adopt_weights() of the model, without adapters, with the values of all
  /// logical tensors (engine/nn/logical_tensors.h), which are read where they lie.
  void adopt_weights(std::uint64_t version, const SharedArray<float>& values,
                     bool between_sequences);
  /// Ends all requests with Errc::closed.
  void stop();

 private:
  struct Host;
  using Adapter = std::shared_ptr<const engine::nn::LoraModel>;
  explicit ModelSet(std::unique_ptr<Host> host);
  Result<Adapter> read_adapter(const std::string& folder);

  const std::unique_ptr<Host> host_;
  std::mutex reading_;                 // held while all ranks read a folder
  mutable std::mutex mutex_;           // of what follows
  std::vector<ServedPointer> served_;  // the model first
  std::vector<std::weak_ptr<const Served>> unloaded_;
};

}  // namespace troupe::launch::serve::api
