#include "algorithms/training/weight_stream.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {
namespace {

namespace protocol = actors::protocol;
using actors::Task;

// Parts on their way at a time: the next one is encoded while one is decoded.
constexpr std::size_t parts_ahead = 2;

const std::string this_process = "the controller";

// Whether the receiver cannot reach the memory. Any other error, of the receiver itself, ends the
// run.
bool unreachable(Errc code) {
  return code == Errc::not_found || code == Errc::unsupported || code == Errc::io ||
         code == Errc::full;
}

}  // namespace

protocol::ReadWeights WeightStream::part(std::uint64_t version, std::size_t first,
                                         std::uint64_t base) const {
  return {version, first, std::min(part_values(), options_.values - first), options_.config.format,
          base};
}

void WeightStream::use_sockets(const std::string& who, const Error& why) {
  if (apart_.insert(who).second)
    log_info(cat("weights reach ", who, " through sockets: ", why.what));
}

// Memory of this process from now on, which passes it on by a name of its own.
bool WeightStream::mapped(Weights& weights) {
  if (!weights.memory) return false;
  auto memory = SharedMemory::open(*weights.memory, options_.values * sizeof(float));
  if (!memory) {
    if (!unreachable(memory.error().code)) throw Failure(memory.error());
    use_sockets(this_process, memory.error());
    weights.memory.reset();
    return false;
  }
  weights.memory = (*memory)->name();
  const auto bytes = (*memory)->bytes();
  weights.values = {*memory, {reinterpret_cast<const float*>(bytes.data()), options_.values}};
  return true;
}

Task<protocol::Weights> WeightStream::fetch(Source policy, std::uint64_t version) {
  protocol::Publish publish{version};
  publish.in_parts = true;
  publish.keep_before = deltas();
  publish.shared_memory =
      options_.config.shared_memory == SharedMemoryUse::automatic && !apart_.contains(this_process);
  publish.as_bf16 = rounds();
  auto publishing = policy.ask(std::move(publish), options_.timeout);
  Weights weights = co_await publishing.get();
  if (weights.count != options_.values)
    throw Failure({Errc::bad_input, cat(to_string(policy.address()), ": expected weights of ",
                                        options_.values, " values, found ", weights.count)});
  if (!mapped(weights)) {
    auto reading = read(policy, version);
    weights.values = co_await reading;
  }
  if (deltas()) fetched_ = {version, weights.values};
  co_return weights;
}

Task<SharedArray<float>> WeightStream::read(Source policy, std::uint64_t version) {
  actors::roles::WeightAssembly arriving(options_.values);
  std::deque<actors::Reply<protocol::WeightPart>> ahead;
  for (std::size_t first = 0; first < options_.values || !ahead.empty();) {
    for (; first < options_.values && ahead.size() < parts_ahead; first += part_values()) {
      protocol::ReadWeights message = part(version, first, fetched_.version);
      ahead.push_back(policy.ask(std::move(message), options_.timeout));
    }
    const protocol::WeightPart come = co_await ahead.front().get();
    ahead.pop_front();
    sent_bytes_ += come.bytes->size();
    value_or_throw(arriving.load(come, fetched_));
  }
  co_return value_or_throw(arriving.take(version));
}

Task<void> WeightStream::send(Receiver to, const Weights& weights) {
  const std::string who = to_string(to.address());
  if (weights.memory && !apart_.contains(who)) {
    protocol::MapWeights message{weights.version, *weights.memory};
    auto mapping = to.ask(std::move(message), options_.timeout);
    const auto mapped = co_await mapping.try_get();
    if (mapped) co_return;
    if (!unreachable(mapped.error().code)) throw Failure(mapped.error());
    use_sockets(who, mapped.error());
  }
  const actors::roles::BaseWeights base = used_[who];
  std::deque<actors::Reply<void>> ahead;
  for (std::size_t first = 0; first < options_.values || !ahead.empty();) {
    for (; first < options_.values && ahead.size() < parts_ahead; first += part_values()) {
      const protocol::ReadWeights wanted = part(weights.version, first, base.version);
      protocol::LoadWeights message;
      message.part = value_or_throw(actors::roles::weight_part(wanted, *weights.values, base));
      sent_bytes_ += message.part.bytes->size();
      ahead.push_back(to.ask(std::move(message), options_.timeout));
    }
    co_await ahead.front().get();
    ahead.pop_front();
  }
}

void WeightStream::committed(const Address& receiver, const Weights& weights) {
  if (deltas()) used_[to_string(receiver)] = {weights.version, weights.values};
}

}  // namespace troupe::algorithms
