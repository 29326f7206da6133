#include "launch/serve/api/pooling_call.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "launch/serve/api/failure.h"
#include "launch/serve/api/pooling_answer.h"

namespace troupe::launch::serve::api {

PoolingCall::PoolingCall(ServedPointer served, AnswerQueue& answers, PoolingRequest request,
                         std::string id, http::Responder responder)
    : served_(std::move(served)),
      answers_(answers),
      request_(std::move(request)),
      id_(std::move(id)),
      responder_(std::move(responder)),
      values_(request_.texts.size()),
      left_(request_.texts.size()) {
}

void PoolingCall::start(const ServedPointer& served, AnswerQueue& answers, PoolingRequest request,
                        const http::Request& from, http::Responder responder,
                        std::shared_ptr<const void> in_progress) {
  const auto call =
      std::make_shared<PoolingCall>(served, answers, std::move(request), from.id, responder);
  call->in_progress_ = std::move(in_progress);
  std::vector<engine::serving::PoolingJob> jobs;
  for (std::size_t n = 0; n < call->request_.texts.size(); ++n) {
    jobs.push_back(
        {call->request_.texts[n], call->request_.every_token,
         [call, n](Result<std::vector<float>> values) { call->on_end(n, std::move(values)); },
         [responder] { return !responder.disconnected(); }});
  }
  if (auto accepted = served->pooling->submit(std::move(jobs), from.key); !accepted)
    responder.respond(error_answer(accepted.error()));
}

/// The first error is the answer of the whole call.
void PoolingCall::on_end(std::size_t text, Result<std::vector<float>> values) {
  --left_;
  if (failed_) return;
  const auto finite = [](float value) { return std::isfinite(value); };
  if (values && !std::ranges::all_of(*values, finite))
    values = fail(Errc::bad_input, "the model's outputs are not finite; its weights are damaged");
  if (!values) {
    failed_ = true;
    return responder_.respond(error_answer(values.error()));
  }
  values_[text] = std::move(*values);
  if (left_ > 0) return;
  answers_.post([self = shared_from_this()] {
    if (self->responder_.disconnected()) return;
    self->responder_.respond(
        pooling_answer(self->request_, *self->served_->model, self->id_, self->values_));
  });
}

}  // namespace troupe::launch::serve::api
