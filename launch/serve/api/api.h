// Api: the endpoints of `troupe serve`.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "launch/serve/api/answer_queue.h"
#include "launch/serve/api/chat_format.h"
#include "launch/serve/api/generation_call.h"
#include "launch/serve/api/metrics.h"
#include "launch/serve/api/model_set.h"
#include "launch/serve/api/pooling_request.h"
#include "launch/serve/api/request_bounds.h"
#include "launch/serve/api/workers.h"
#include "launch/serve/http/router.h"

namespace troupe::launch::serve::api {

class Api {
 public:
  /// `models` must outlive this. `version`: of the program. `formats`: endpoints beside its own.
  Api(const ModelSet& models, std::string version, std::vector<ChatFormat> formats);

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
  using FormPointer = std::shared_ptr<const http::ClientForm>;
  using Answer = std::function<http::Response(const http::Request&, const Json&)>;
  using Start = std::function<void(const ServedPointer&, const http::Request&, const Json&,
                                   const http::Responder&)>;

  void add_probes(http::Router& router);
  void add_models(http::Router& router);
  void add_generation(http::Router& router, const std::string& path, Endpoint endpoint);
  void add_pooling(http::Router& router, const std::string& path, Pooling endpoint);
  /// SageMaker's endpoint, which is another one by the members of the body; a header may name the
  /// model in place of `model`.
  void add_invocations(http::Router& router);
  void add_format(http::Router& router, const ChatFormat& format);
  void add_count(http::Router& router, const ChatFormat& format);
  void add_refusal(http::Router& router, const std::string& path, const std::string& why,
                   const FormPointer& form = nullptr);
  /// A route whose handler runs in the workers and answers later, with the body as JSON.
  void add_start(http::Router& router, const std::string& path, Start start,
                 const FormPointer& form = nullptr);
  /// A route whose handler runs in the workers, with the body as JSON.
  void add_answer(http::Router& router, const std::string& path, Answer answer,
                  const FormPointer& form = nullptr);
  void generate(Endpoint endpoint, const ServedPointer& served, const http::Request& from,
                const Json& body, const http::Responder& to);
  void pool(Pooling endpoint, const ServedPointer& served, const http::Request& from,
            const Json& body, const http::Responder& to);
  /// Each name once, as clients choose them.
  void log_unknown(const http::Request& request, const UnknownFields& unknown);

  /// Counts a request for /load until the last copy is gone.
  std::shared_ptr<const void> counted();

  ServedPointer named_in(const Json& body) const;
  http::Response tokenize(const http::Request& from, const Json& body);
  http::Response detokenize(const http::Request& from, const Json& body);

  const ModelSet& models_;
  std::string version_;
  std::vector<ChatFormat> formats_;
  Metrics metrics_;
  SampledTokens* sampled_ = nullptr;
  std::function<std::string()> more_metrics_;
  HeldTotal waiting_{.limit = std::size_t{64} << 20, .small = std::size_t{64} << 10};
  HeldTotal results_{.limit = std::size_t{160} << 20, .small = std::size_t{1} << 20};
  AnswerQueue answers_;
  std::atomic<bool> draining_ = false;
  std::shared_ptr<std::atomic<std::int64_t>> in_progress_ =
      std::make_shared<std::atomic<std::int64_t>>(0);
  std::mutex logged_mutex_;
  std::set<std::string> logged_;  // names of unknown fields
  Workers workers_;
};

}  // namespace troupe::launch::serve::api
