// AdminApi: the endpoints of the admin listener, which change what the server computes.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"
#include "launch/serve/api/model_set.h"
#include "launch/serve/api/request_fields.h"
#include "launch/serve/api/workers.h"
#include "launch/serve/http/router.h"

namespace troupe::launch::serve::api {

/// WeightsRoot: the folder below which a server finds checkpoints by their names.
class WeightsRoot {
 public:
  /// Errc::usage unless the path is a folder.
  static Result<WeightsRoot> open(const std::string& folder);

  /// The folder of a checkpoint such as "run/step-100", all links followed. Errc::bad_input for
  /// names that lead out of the root, also by a link; not_found.
  Result<std::string> find(const std::string& name) const;

 private:
  explicit WeightsRoot(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;  // without links
};

class AdminApi {
 public:
  /// `models` outlives this. Without a root neither weights nor adapters can be loaded.
  AdminApi(ModelSet& models, std::optional<WeightsRoot> root);

  /// /pause, /resume, /is_paused, /v1/load_lora_adapter and /v1/unload_lora_adapter as in vLLM,
  /// /update_weights_from_disk as in SGLang. Handlers use this object.
  http::Router routes();

 private:
  void add(http::Router& router, const std::string& path,
           std::function<Json(const http::Request&)> answer);
  std::string folder_in(RequestFields& fields, const std::string& field) const;
  Json load_weights(const Json& body);
  Json load_adapter(const Json& body);
  Json unload_adapter(const Json& body);

  ModelSet& models_;
  std::optional<WeightsRoot> root_;
  Workers workers_;
};

}  // namespace troupe::launch::serve::api
