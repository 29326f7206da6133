#include "actors/group/engine_follower.h"

#include "actors/group/replicated_engine.h"
#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "engine/constraints/constraint.h"
#include "transports/wire/codec.h"

namespace troupe::actors::group {

using engine::generate::Request;

template <class M>
bool EngineFollower::handle_as(const GroupCall& call) {
  if (call.type != M::name) return false;
  on(transports::wire::decode<M>(call.body, cat("message '", call.type, "'")));
  return true;
}

void EngineFollower::serve() {
  while (const auto call = channel_.next()) {
    const bool known = handle_as<EngineCalls>(*call) || handle_as<Beams>(*call) ||
                       handle_as<Pool>(*call) || handle_as<ReadFolder>(*call) ||
                       handle_as<UseFolder>(*call);
    check(known, cat("the engine has no message '", call->type, "'"));
  }
}

void EngineFollower::on(EngineCalls message) {
  if (!engine_.started()) value_or_throw(engine_.start());
  for (EngineCall& call : message.calls) apply(std::move(call));
  if (!message.steps) return;
  const std::int64_t sampled = engine_.counters().generated_tokens;
  check(sampled == message.sampled,
        cat("the ranks of the engine have sampled different numbers of tokens: ", message.sampled,
            " and ", sampled));
  try {
    engine_.step();
  } catch (const engine::generate::RequestFailure&) {
    // The leader fails the request, and cancels it here.
  }
}

void EngineFollower::apply(EngineCall call) {
  switch (call.kind) {
    case EngineCallKind::submit:
      submit(request_of(std::move(*call.request)));
      return;
    case EngineCallKind::cancel:
      engine_.cancel(call.number);
      return;
    case EngineCallKind::constrain:
      constraints_[call.number] = parts_.constraint(call.constraint);
      return;
    case EngineCallKind::release:
      constraints_.erase(call.number);
      adapters_.erase(call.number);
      return;
  }
}

/// Nobody waits for the result, which is the leader's, and so is a refusal.
void EngineFollower::submit(Request request) {
  const std::uint64_t id = request.id, sample = request.sample_id;
  engine_.submit(
      id, {.request = std::make_shared<const Request>(std::move(request)), .sample_id = sample});
}

Request EngineFollower::request_of(RequestMessage message) const {
  Request request = std::move(message.request);
  if (message.decodes) request.decode = parts_.text(request.prompt, message.skips_special);
  if (message.constraint != 0) request.constraint = constraints_.at(message.constraint);
  if (message.adapter != 0) request.adapter = adapters_.at(message.adapter);
  if (!message.allowed.empty())
    request.allowed =
        std::make_shared<const engine::constraints::TokenMask>(std::move(message.allowed));
  return request;
}

void EngineFollower::on(Beams message) {
  const Request request = request_of(std::move(message.request));
  // Errors are the leader's, too.
  static_cast<void>(search_on_all_ranks(channel_, world_, {}, [&](std::function<bool()> together) {
    return engine_.beam_search(request, std::move(together));
  }));
}

void EngineFollower::on(const Pool& message) {
  engine_.pool(message.batch);
}

void EngineFollower::on(ReadFolder message) {
  reading_ = std::async(std::launch::async, [this, message = std::move(message)]() -> Result<Read> {
    if (message.adapter) {
      auto adapter = parts_.adapter(message.folder);
      RETURN_IF_ERROR(adapter);
      return Read{.adapter = std::move(*adapter), .weights = {}};
    }
    auto weights = parts_.weights(message.folder);
    RETURN_IF_ERROR(weights);
    return Read{.adapter = nullptr, .weights = std::move(*weights)};
  });
}

void EngineFollower::on(const UseFolder& message) {
  Read read;
  try {
    channel_.run_on_all_ranks("the use of a folder",
                              [&] { read = value_or_throw(reading_.get()); });
  } catch (const Failure&) {
    return;  // the leader's answer
  }
  if (message.adapter != 0) {
    adapters_[message.adapter] = std::move(read.adapter);
    return;
  }
  value_or_throw(engine_.set_weights({.write = std::move(read.weights)}));
}

}  // namespace troupe::actors::group
