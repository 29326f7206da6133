#include "actors/group/replicated_engine.h"

#include <new>

#include "engine/constraints/constraint.h"
#include "engine/nn/lora_rows.h"
#include "transports/wire/codec.h"

namespace troupe::actors::group {

namespace {

/// A message has a bounded number of parts, and long prompts are parts.
constexpr std::size_t max_calls = 1024;

using engine::generate::Generation, engine::generate::Request;
using engine::serving::Engine, engine::serving::RequestSource;

/// Without the numbers of its objects.
RequestMessage message_of(const Request& request, const RequestSource& source) {
  RequestMessage message{.request = request,
                         .decodes = request.decode && !request.params.stop_strings.empty(),
                         .skips_special = source.skips_special};
  if (request.allowed) message.allowed = request.allowed->words();
  return message;
}

}  // namespace

Result<std::vector<Generation>> search_on_all_ranks(
    GroupChannel& channel, engine::parallel::Communicator& world, const std::function<bool()>& stop,
    const std::function<Result<std::vector<Generation>>(std::function<bool()>)>& search) {
  const auto stops = [&] {
    std::byte stopped{world.rank() == 0 && stop && stop()};
    world.broadcast(std::span(&stopped, 1), 0, "whether to stop");
    return stopped != std::byte{};
  };
  std::vector<Generation> found;
  try {
    channel.run_on_all_ranks("generate", [&] { found = value_or_throw(search(stops)); });
  } catch (const Failure& failure) {
    return fail(failure);
  }
  return found;
}

template <class M>
void ReplicatedEngine::send(M message) {
  const auto kept = std::make_shared<const M>(std::move(message));
  channel_->send({"engine", std::string(M::name), transports::wire::encode(*kept, kept)});
}

void ReplicatedEngine::add(EngineCall call) {
  calls_.calls.push_back(std::move(call));
  if (calls_.calls.size() == max_calls) send_calls(false);
}

void ReplicatedEngine::send_calls(bool steps) {
  calls_.steps = steps;
  calls_.sampled = steps ? counters().generated_tokens : 0;
  send(std::exchange(calls_, {}));
}

/// Objects whose last request has ended here. Another one may be at the same address.
void ReplicatedEngine::release_unused() {
  std::erase_if(known_, [&](const auto& each) {
    const bool unused = each.second.object.expired();
    if (unused) add({.kind = EngineCallKind::release, .number = each.second.number});
    return unused;
  });
}

void ReplicatedEngine::announce(const Request& request, const RequestSource& source) {
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

Result<> ReplicatedEngine::accept(Request request, const RequestSource& source) {
  try {
    announce(request, source);
    return Engine::accept(std::move(request), source);
  } catch (const std::bad_alloc& problem) {
    world_.abort(problem.what());
    throw;
  }
}

bool ReplicatedEngine::cancel(std::uint64_t id) {
  add({.kind = EngineCallKind::cancel, .number = id});
  return Engine::cancel(id);
}

void ReplicatedEngine::step() {
  try {
    send_calls(true);
    Engine::step();
  } catch (const engine::generate::RequestFailure&) {
    throw;
  } catch (const std::exception& problem) {
    world_.abort(problem.what());
    throw;
  }
}

Result<std::vector<Generation>> ReplicatedEngine::beam_search(const Request& request,
                                                              std::function<bool()> stop) {
  if (!calls_.calls.empty()) send_calls(false);
  send(Beams{message_of(request, {})});
  return search_on_all_ranks(*channel_, world_, stop, [&](std::function<bool()> together) {
    return Engine::beam_search(request, std::move(together));
  });
}

std::vector<float> ReplicatedEngine::pool(const engine::serving::PoolingBatch& batch) {
  try {
    send(Pool{batch});
    return Engine::pool(batch);
  } catch (const std::exception& problem) {
    world_.abort(problem.what());
    throw;
  }
}

void ReplicatedEngine::read_folder(const std::string& folder, bool adapter) {
  send(ReadFolder{folder, adapter});
}

Result<> ReplicatedEngine::use_folder(std::uint64_t adapter, const Result<>& mine) {
  send_calls(false);
  send(UseFolder{adapter});
  try {
    channel_->run_on_all_ranks("the use of a folder", [&] { value_or_throw(mine); });
  } catch (const Failure& failure) {
    return fail(failure);
  }
  return {};
}

Result<> ReplicatedEngine::use_adapter(
    const Result<std::shared_ptr<const engine::nn::LoraModel>>& mine) {
  release_unused();
  const std::uint64_t number = ++numbers_;
  RETURN_IF_ERROR(use_folder(number, mine ? Result<>() : fail(mine)));
  known_[mine->get()] = {number, *mine};
  return {};
}

Result<> ReplicatedEngine::use_weights(const Result<>& mine) {
  return use_folder(0, mine);
}

}  // namespace troupe::actors::group
