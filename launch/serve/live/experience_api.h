// ExperienceApi: the endpoints at which programs lease samples of a run and send what they have
// made (docs/agents.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "engine/base/json.h"
#include "launch/serve/api/workers.h"
#include "launch/serve/http/router.h"
#include "launch/serve/live/sample_exchange.h"

namespace troupe::launch::live {

class ExperienceApi {
 public:
  struct Limits {
    std::int64_t vocabulary = 0;
    std::int64_t length = 0;  ///< tokens of prompt and sample
  };
  /// `exchange` and `version`, that of the weights in use, must outlive this.
  ExperienceApi(SampleExchange& exchange, const std::atomic<std::uint64_t>& version,
                const Limits& limits);

  /// Adds the routes, whose handlers use this object.
  void add_to(http::Router& router);

 private:
  void add(http::Router& router, const char* path, std::function<Json(const Json&)> answer);
  Json lease(const Json& body);
  Json accept(const Json& body);

  SampleExchange& exchange_;
  const std::atomic<std::uint64_t>& version_;
  const Limits limits_;
  api::Workers workers_;
};

}  // namespace troupe::launch::live
