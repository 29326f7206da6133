// AdminApi: the endpoints of the admin listener, which change what the server computes.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "engine/base/json.h"
#include "engine/serving/generation_service.h"
#include "launch/serve/api/served_model.h"
#include "launch/serve/api/weights_root.h"
#include "launch/serve/api/workers.h"
#include "launch/serve/http/router.h"

namespace troupe::launch::api {

class AdminApi {
 public:
  /// `services`: of the model, and of its adapters behind it. All outlive this. Without a root no
  /// weights can be loaded; with one, the model has no adapters.
  AdminApi(ServedModel& model, std::vector<engine::serving::GenerationService*> services,
           std::optional<WeightsRoot> root);

  /// /pause, /resume and /is_paused as in vLLM, /update_weights_from_disk as in SGLang. Handlers
  /// use this object.
  http::Router routes();

 private:
  void add(http::Router& router, const std::string& path,
           std::function<Json(const http::Request&)> answer);
  Json load_weights(const Json& body);

  ServedModel& model_;
  std::vector<engine::serving::GenerationService*> services_;
  std::optional<WeightsRoot> root_;
  Workers workers_;
};

}  // namespace troupe::launch::api
