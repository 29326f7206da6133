#include "launch/commands/serve/engine_follower.h"

#include <utility>

#include "engine/base/check.h"
#include "engine/base/text.h"
#include "launch/serve/api/output_text.h"
#include "transports/wire/codec.h"

namespace troupe::launch::commands {

using engine::generate::Request;

Result<std::unique_ptr<EngineFollower>> EngineFollower::create(serve::api::LoadedEngine loaded) {
  std::unique_ptr<EngineFollower> made(new EngineFollower(std::move(loaded)));
  if (made->loaded_.model.pools()) return made;
  auto generator =
      engine::generate::Generator::create(made->loaded_.model.decoder(), made->loaded_.config);
  RETURN_IF_ERROR(generator);
  made->generator_.emplace(std::move(*generator));
  return made;
}

template <class M>
bool EngineFollower::handle_as(const actors::group::GroupCall& call) {
  if (call.type != M::name) return false;
  on(transports::wire::decode<M>(call.body, cat("message '", call.type, "'")));
  return true;
}

void EngineFollower::serve(actors::group::GroupChannel& channel) {
  channel_ = &channel;
  while (const auto call = channel.next()) {
    const bool known =
        handle_as<serve::ranks::EngineCalls>(*call) || handle_as<serve::ranks::Pool>(*call) ||
        handle_as<serve::ranks::ReadFolder>(*call) || handle_as<serve::ranks::UseFolder>(*call);
    check(known, cat("the engine has no message '", call->type, "'"));
  }
}

void EngineFollower::on(serve::ranks::EngineCalls message) {
  for (serve::ranks::EngineCall& call : message.calls) apply(std::move(call));
  if (!message.steps) return;
  check(generator_->stats().sampled == message.sampled,
        cat("the ranks of the server have sampled different numbers of tokens: ", message.sampled,
            " and ", generator_->stats().sampled));
  step();
}

void EngineFollower::apply(serve::ranks::EngineCall call) {
  switch (call.kind) {
    case serve::ranks::EngineCallKind::submit:
      // A request that is refused here is refused at the leader, too.
      static_cast<void>(generator_->submit(request_of(std::move(*call.request))));
      return;
    case serve::ranks::EngineCallKind::cancel:
      generator_->cancel(call.number);
      return;
    case serve::ranks::EngineCallKind::constrain:
      constraints_[call.number] =
          value_or_throw(loaded_.model.constrain_alone(serve::api::deserialized(call.constraint)));
      return;
    case serve::ranks::EngineCallKind::release:
      constraints_.erase(call.number);
      adapters_.erase(call.number);
      return;
  }
}

Request EngineFollower::request_of(serve::ranks::RequestMessage message) const {
  Request request;
  request.id = message.id;
  request.sample_id = message.sample_id;
  request.params = std::move(message.params);
  if (message.decodes)
    request.decode = serve::api::TextAfterPrompt(*loaded_.model.tokenizer(), message.prompt,
                                                 message.skips_special);
  request.prompt = std::move(message.prompt);
  if (message.constraint != 0) request.constraint = constraints_.at(message.constraint);
  if (message.adapter != 0) request.adapter = adapters_.at(message.adapter);
  if (!message.allowed.empty())
    request.allowed =
        std::make_shared<const engine::constraints::TokenMask>(std::move(message.allowed));
  request.begins_without_space = message.begins_without_space;
  request.cache_salt = std::move(message.cache_salt);
  request.prompt_alternatives = message.prompt_alternatives;
  request.generates = message.generates;
  request.reported = std::move(message.reported);
  return request;
}

/// The results are the leader's, and so is the failure of a request, which it cancels.
void EngineFollower::step() {
  try {
    generator_->step();
  } catch (const engine::generate::RequestFailure&) {
  }
}

void EngineFollower::on(const serve::ranks::Pool& message) {
  engine::serving::pooled_values(loaded_.model.decoder(), loaded_.model.precision(), message.batch);
}

void EngineFollower::on(serve::ranks::ReadFolder message) {
  reading_ = std::async(std::launch::async, [this, message = std::move(message)]() -> Result<Read> {
    if (message.adapter) {
      auto adapter = loaded_.model.load_adapter(message.folder);
      RETURN_IF_ERROR(adapter);
      return Read{.adapter = std::move(*adapter), .weights = {}};
    }
    auto weights = loaded_.model.read_weights(message.folder);
    RETURN_IF_ERROR(weights);
    return Read{.adapter = nullptr, .weights = std::move(*weights)};
  });
}

void EngineFollower::on(const serve::ranks::UseFolder& message) {
  Read read;
  try {
    channel_->run_on_all_ranks("the use of a folder",
                               [&] { read = value_or_throw(reading_.get()); });
  } catch (const Failure&) {
    return;  // the leader's answer
  }
  if (message.adapter != 0) {
    adapters_[message.adapter] = std::move(read.adapter);
    return;
  }
  value_or_throw(read.weights());
  generator_->weights_changed(++version_);
}

}  // namespace troupe::launch::commands
