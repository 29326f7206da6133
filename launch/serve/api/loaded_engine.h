// LoadedEngine: the model of a server with what computes its answers, before it starts: what every
// rank of a group loads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "actors/group/engine_follower.h"
#include "engine/base/errors/error.h"
#include "engine/serving/generation_thread.h"
#include "launch/model/model.h"
#include "launch/serve/api/served_model.h"

namespace troupe::launch::serve::api {

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

struct LoadedEngine {
  ServedModel model;
  std::unique_ptr<model::Model> draft;       ///< nullptr: none
  engine::generate::GeneratorConfig config;  ///< refers to `draft`
  engine::serving::ServiceLimits limits;

  /// `part`: of the model; every rank has the whole draft model. Errors of ServedModel::load() and
  /// Model::load().
  static Result<LoadedEngine> load(const ServedModelOptions& model, const EngineOptions& engine,
                                   const engine::models::ModelPart& part = {});
};

/// What another rank of the server makes the objects of requests of; `loaded` outlives it.
actors::group::EngineParts parts_of(LoadedEngine& loaded);

}  // namespace troupe::launch::serve::api
