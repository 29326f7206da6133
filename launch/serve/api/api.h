// Api: the endpoints of `troupe serve`.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "engine/serving/generation_service.h"
#include "engine/serving/pooling_service.h"
#include "launch/serve/api/generation_call.h"
#include "launch/serve/api/metrics.h"
#include "launch/serve/api/pooling_request.h"
#include "launch/serve/api/served_model.h"
#include "launch/serve/api/workers.h"
#include "launch/serve/http/router.h"

namespace troupe::launch::api {

/// What computes the answers: one of them.
struct Services {
  engine::serving::GenerationService* generation = nullptr;
  engine::serving::PoolingService* pooling = nullptr;

  engine::serving::ServiceCounters counters() const {
    return generation != nullptr ? generation->counters() : pooling->counters();
  }
};

/// A model of the server, which requests name.
struct Served {
  const ServedModel* model = nullptr;
  Services services;
};

/// The sums of the models' counters.
engine::serving::ServiceCounters sum_of_counters(const std::vector<Served>& models);

class Api {
 public:
  /// The first model answers requests without a name; the others are adapters of it. All must
  /// outlive this. `version`: of the program.
  Api(std::vector<Served> models, std::string version);

  /// The routes, whose handlers use this object.
  http::Router routes();
  /// From now on /readyz answers 503 and generation requests are refused.
  void drain() { draining_ = true; }

 private:
  using Answer = std::function<http::Response(const http::Request&, const Json&)>;
  using Start =
      std::function<void(const Served&, const http::Request&, const Json&, const http::Responder&)>;

  void add_probes(http::Router& router);
  void add_models(http::Router& router);
  void add_generation(http::Router& router, const std::string& path, Endpoint endpoint);
  void add_pooling(http::Router& router, const std::string& path, Pooling endpoint);
  void add_refusal(http::Router& router, const std::string& path, const std::string& why);
  /// A route whose handler runs in the workers and answers later, with the body as JSON.
  void add_start(http::Router& router, const std::string& path, Start start);
  /// A route whose handler runs in the workers, with the body as JSON.
  void add_answer(http::Router& router, const std::string& path, Answer answer);
  void in_worker(http::Responder responder, std::function<void()> task);

  const Served& named_in(const Json& body) const;
  Json model_entry(const Served& served) const;
  http::Response tokenize(const Json& body) const;
  http::Response detokenize(const Json& body) const;

  std::vector<Served> models_;
  std::string version_;
  Metrics metrics_;
  std::atomic<bool> draining_ = false;
  Workers workers_;
};

}  // namespace troupe::launch::api
