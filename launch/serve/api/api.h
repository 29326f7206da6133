// Api: the endpoints of `troupe serve`.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "launch/serve/api/answer_queue.h"
#include "launch/serve/api/generation_call.h"
#include "launch/serve/api/metrics.h"
#include "launch/serve/api/model_set.h"
#include "launch/serve/api/pooling_request.h"
#include "launch/serve/api/request_bounds.h"
#include "launch/serve/api/request_fields.h"
#include "launch/serve/api/workers.h"
#include "launch/serve/http/router.h"

namespace troupe::launch::api {

inline constexpr const char* generates_nothing =
    "the model gives scores or embeddings and generates no text";

/// The tokens of one conversation (messages, tools) or one prompt, as /tokenize returns them.
/// Throws ApiFailure and Failure.
std::vector<std::int32_t> tokens_to_count(RequestFields& fields, const ServedModel& model);

class Api {
 public:
  /// `models` must outlive this. `version`: of the program.
  Api(const ModelSet& models, std::string version);

  /// The routes, whose handlers use this object.
  http::Router routes();
  /// Before the server starts: `sampled` receives every token that is sampled and outlives this;
  /// /metrics ends with what `more` returns.
  void record(SampledTokens& sampled, std::function<std::string()> more) {
    sampled_ = &sampled;
    more_metrics_ = std::move(more);
  }
  /// From now on /readyz answers 503 and generation requests are refused.
  void drain() { draining_ = true; }

 private:
  using DialectPointer = std::shared_ptr<const http::Dialect>;
  using Answer = std::function<http::Response(const http::Request&, const Json&)>;
  using Start = std::function<void(const ServedPointer&, const http::Request&, const Json&,
                                   const http::Responder&)>;

  void add_probes(http::Router& router);
  void add_models(http::Router& router);
  void add_generation(http::Router& router, const std::string& path, Endpoint endpoint);
  void add_pooling(http::Router& router, const std::string& path, Pooling endpoint);
  // Other formats of generation (api_formats.cpp).
  void add_responses(http::Router& router, const std::string& path);
  void add_messages(http::Router& router, const std::string& path);
  void add_message_count(http::Router& router, const std::string& path);
  void add_refusal(http::Router& router, const std::string& path, const std::string& why,
                   const DialectPointer& dialect = nullptr);
  /// A route whose handler runs in the workers and answers later, with the body as JSON.
  void add_start(http::Router& router, const std::string& path, Start start,
                 const DialectPointer& dialect = nullptr);
  /// A route whose handler runs in the workers, with the body as JSON.
  void add_answer(http::Router& router, const std::string& path, Answer answer,
                  const DialectPointer& dialect = nullptr);
  /// Each name once, as clients choose them.
  void log_unknown(const http::Request& request, const UnknownFields& unknown);

  ServedPointer named_in(const Json& body) const;
  http::Response tokenize(const Json& body) const;
  http::Response detokenize(const Json& body) const;

  const ModelSet& models_;
  std::string version_;
  Metrics metrics_;
  SampledTokens* sampled_ = nullptr;
  std::function<std::string()> more_metrics_;
  HeldTotal waiting_{.limit = std::size_t{64} << 20, .small = std::size_t{64} << 10};
  HeldTotal results_{.limit = std::size_t{160} << 20, .small = std::size_t{1} << 20};
  AnswerQueue answers_;
  std::atomic<bool> draining_ = false;
  std::mutex logged_mutex_;
  std::set<std::string> logged_;  // names of unknown fields
  Workers workers_;
};

}  // namespace troupe::launch::api
