// ExperienceApi: the endpoints at which programs lease samples of a run and send what they have
// made (docs/agents.md).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/json/json.h"
#include "launch/serve/api/sampled_tokens.h"
#include "launch/serve/api/workers.h"
#include "launch/serve/http/router.h"
#include "launch/serve/live/experience_fields.h"
#include "launch/serve/live/sample_exchange.h"

namespace troupe::launch::serve::live {

class ExperienceApi {
 public:
  struct Limits {
    std::int64_t vocabulary = 0;
    std::int64_t length = 0;  ///< tokens of prompt and sample
    /// Names of the API keys that may lease and send samples; empty: every client of the server.
    std::vector<std::string> keys = {};
    std::int64_t mask_bytes = 0;  ///< of the sampling masks of a sample; 0: none are taken
    bool masks_required = false;
  };
  /// `exchange`, `sampled` and `version`, that of the weights in use, must outlive this.
  ExperienceApi(SampleExchange& exchange, const api::SampledTokens& sampled,
                const std::atomic<std::uint64_t>& version, const Limits& limits);

  /// Adds the routes, whose handlers use this object.
  void add_to(http::Router& router);
  /// Counts of accepted and refused samples, in Prometheus' text format.
  std::string metrics() const;

 private:
  /// Why a sample was refused.
  enum class Reason { field, duplicate, not_offered, not_leased, too_old, logprobs };
  static constexpr std::size_t reasons = 6;

  void add(http::Router& router, const char* path,
           std::function<Json(const std::string& client, const Json&)> answer);
  Json lease(const std::string& client, const Json& body);
  Json accept(const std::string& client, const Json& body);
  /// Throws ApiFailure with status 409 unless the sample is accepted.
  void require(Arrival arrival, const SentSample& sent, std::uint64_t oldest);
  void require_sampled_here(const SentSample& sent);
  void count(Reason reason) { ++refused_[static_cast<std::size_t>(reason)]; }
  /// Once for each client.
  void warn(const std::string& client, const std::string& what);

  SampleExchange& exchange_;
  const api::SampledTokens& sampled_;
  const std::atomic<std::uint64_t>& version_;
  const Limits limits_;
  std::atomic<std::uint64_t> accepted_ = 0;
  std::array<std::atomic<std::uint64_t>, reasons> refused_{};
  std::mutex warned_mutex_;
  std::set<std::string> warned_;
  api::Workers workers_;
};

}  // namespace troupe::launch::serve::live
