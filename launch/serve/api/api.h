// Api: the endpoints of `troupe serve`.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "engine/serving/generation_service.h"
#include "launch/serve/api/generation_call.h"
#include "launch/serve/api/metrics.h"
#include "launch/serve/api/served_model.h"
#include "launch/serve/api/workers.h"
#include "launch/serve/http/router.h"

namespace troupe::launch::api {

class Api {
 public:
  /// Both must outlive this. `version`: of the program.
  Api(const ServedModel& model, engine::serving::GenerationService& service, std::string version);

  /// The routes, whose handlers use this object.
  http::Router routes();
  /// From now on /readyz answers 503 and generation requests are refused.
  void drain() { draining_ = true; }

 private:
  using Answer = std::function<http::Response(const http::Request&, const Json&)>;

  void add_probes(http::Router& router);
  void add_models(http::Router& router);
  void add_unsupported(http::Router& router);
  void add_generation(http::Router& router, const std::string& path, Endpoint endpoint);
  /// A route whose handler runs in the workers, with the body as JSON.
  void add_answer(http::Router& router, const std::string& path, Answer answer);
  void in_worker(http::Responder responder, std::function<void()> task);

  void check_model(const Json& body) const;
  Json model_entry() const;
  http::Response tokenize(const Json& body) const;
  http::Response detokenize(const Json& body) const;

  const ServedModel& model_;
  engine::serving::GenerationService& service_;
  std::string version_;
  Metrics metrics_;
  std::atomic<bool> draining_ = false;
  Workers workers_;
};

}  // namespace troupe::launch::api
