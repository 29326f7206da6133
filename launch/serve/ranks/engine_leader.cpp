#include "launch/serve/ranks/engine_leader.h"

#include <utility>

#include "engine/constraints/constraint.h"
#include "engine/nn/lora_rows.h"
#include "transports/wire/codec.h"

namespace troupe::launch::serve::ranks {

namespace {

/// A message has a bounded number of parts, and long prompts are parts.
constexpr std::size_t max_calls = 1024;

using engine::generate::Request;
using engine::serving::RequestSource;

/// Without the numbers of its objects.
RequestMessage message_of(const Request& request, const RequestSource& source) {
  // Names every member, so that a new one does not compile.
  const auto& [id, prompt, params, sample_id, decode, constraint, allowed, begins_without_space,
               adapter, cache_salt, prompt_alternatives, generates, reported] = request;
  return {.id = id,
          .sample_id = sample_id,
          .prompt = prompt,
          .params = params,
          .decodes = decode && !params.stop_strings.empty(),
          .skips_special = source.skips_special,
          .allowed = allowed ? allowed->words() : std::vector<std::uint64_t>(),
          .begins_without_space = begins_without_space,
          .cache_salt = cache_salt,
          .prompt_alternatives = prompt_alternatives,
          .generates = generates,
          .reported = reported};
}

}  // namespace

EngineLeader::EngineLeader(std::shared_ptr<actors::group::GroupChannel> channel,
                           engine::parallel::Communicator& world)
    : channel_(std::move(channel)), world_(world) {
}

template <class M>
void EngineLeader::send(M message) {
  const auto kept = std::make_shared<const M>(std::move(message));
  channel_->send({"engine", std::string(M::name), transports::wire::encode(*kept, kept)});
}

void EngineLeader::add(EngineCall call) {
  calls_.calls.push_back(std::move(call));
  if (calls_.calls.size() == max_calls) send_calls(false, 0);
}

void EngineLeader::send_calls(bool steps, std::int64_t sampled) {
  calls_.steps = steps;
  calls_.sampled = sampled;
  send(std::exchange(calls_, {}));
}

/// Objects whose last request has ended here. Another one may be at the same address.
void EngineLeader::release_unused() {
  std::erase_if(known_, [&](const auto& each) {
    const bool unused = each.second.object.expired();
    if (unused) add({.kind = EngineCallKind::release, .number = each.second.number});
    return unused;
  });
}

void EngineLeader::submit(const Request& request, const RequestSource& source) {
  release_unused();
  RequestMessage message = message_of(request, source);
  if (request.adapter) message.adapter = known_.at(request.adapter.get()).number;
  if (request.constraint) {
    const auto [found, is_new] = known_.try_emplace(request.constraint.get());
    if (is_new) {
      found->second = {++numbers_, request.constraint};
      add({.kind = EngineCallKind::constrain,
           .number = numbers_,
           .constraint = *source.constraint});
    }
    message.constraint = found->second.number;
  }
  add({.kind = EngineCallKind::submit, .request = std::move(message)});
}

void EngineLeader::cancel(std::uint64_t id) {
  add({.kind = EngineCallKind::cancel, .number = id});
}

void EngineLeader::step(std::int64_t sampled) {
  send_calls(true, sampled);
}

void EngineLeader::pool(const engine::serving::PoolingBatch& batch) {
  send(Pool{batch});
}

void EngineLeader::abort(const std::string& why) noexcept {
  world_.abort(why);
}

void EngineLeader::read_folder(const std::string& folder, bool adapter) {
  send(ReadFolder{folder, adapter});
}

Result<> EngineLeader::use_folder(std::uint64_t adapter, const Result<>& mine) {
  send_calls(false, 0);
  send(UseFolder{adapter});
  try {
    channel_->run_on_all_ranks("the use of a folder", [&] { value_or_throw(mine); });
  } catch (const Failure& failure) {
    return fail(failure);
  }
  return {};
}

Result<> EngineLeader::use_adapter(
    const Result<std::shared_ptr<const engine::nn::LoraModel>>& mine) {
  release_unused();
  const std::uint64_t number = ++numbers_;
  RETURN_IF_ERROR(use_folder(number, mine ? Result<>() : fail(mine)));
  known_[mine->get()] = {number, *mine};
  return {};
}

Result<> EngineLeader::use_weights(const Result<>& mine) {
  return use_folder(0, mine);
}

}  // namespace troupe::launch::serve::ranks
