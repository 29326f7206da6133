// PoolingCall: one request of /pooling, /classify, /score or /v1/embeddings until its answer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launch/serve/api/answer_queue.h"
#include "launch/serve/api/model_set.h"
#include "launch/serve/api/pooling_request.h"
#include "launch/serve/http/request.h"
#include "launch/serve/http/response.h"

namespace troupe::launch::serve::api {

/// The service's callbacks hold it, so that it lives until its last text is done.
class PoolingCall : public std::enable_shared_from_this<PoolingCall> {
 public:
  /// Submits the texts; the answer follows. `answers` outlives the call, `in_progress` counts it
  /// while it lives.
  static void start(const ServedPointer& served, AnswerQueue& answers, PoolingRequest request,
                    const http::Request& from, http::Responder responder,
                    std::shared_ptr<const void> in_progress);

  PoolingCall(ServedPointer served, AnswerQueue& answers, PoolingRequest request, std::string id,
              http::Responder responder);

 private:
  /// In the service's thread.
  void on_end(std::size_t text, Result<std::vector<float>> values);

  ServedPointer served_;
  AnswerQueue& answers_;
  PoolingRequest request_;
  std::string id_;
  std::shared_ptr<const void> in_progress_;
  http::Responder responder_;
  std::vector<std::vector<float>> values_;  // by text
  std::size_t left_;
  bool failed_ = false;
};

}  // namespace troupe::launch::serve::api
