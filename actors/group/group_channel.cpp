#include "actors/group/group_channel.h"

#include <array>
#include <cstring>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/parallel/all_reduce.h"
#include "transports/wire/writer.h"

namespace troupe::actors::group {
namespace {

using transports::wire::Part;

constexpr auto waiting = "the next message of the group's leader";
constexpr std::uint64_t max_bytes = std::uint64_t{1} << 40;  // of one message: more is no message
constexpr std::size_t max_error_bytes = 4096;

/// What followers wait for: how much is coming. All zero: the end.
struct Announcement {
  std::uint64_t actor = 0, type = 0, header = 0, parts = 0;
};

std::span<std::byte> bytes_of(auto& values) {
  return std::as_writable_bytes(std::span(values));
}

/// The outcome of a rank as it travels: nothing, or the kind of its error and the words.
std::string packed(const std::optional<Error>& error) {
  if (!error) return {};
  return static_cast<char>(error->code) + error->what.substr(0, max_error_bytes);
}

Error unpacked(const std::string& text) {
  return {static_cast<Errc>(text[0]), text.substr(1)};
}

std::optional<Error> first_error(const std::vector<std::string>& outcomes) {
  bool same = true;
  for (const auto& outcome : outcomes) same &= outcome == outcomes[0];
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (outcomes[rank].empty()) continue;
    Error error = unpacked(outcomes[rank]);
    if (!same) error.what = cat("rank ", rank, " of ", outcomes.size(), ": ", error.what);
    return error;
  }
  return std::nullopt;
}

}  // namespace

GroupChannel::GroupChannel(std::unique_ptr<engine::parallel::Communicator> own)
    : own_(std::move(own)) {
}

GroupChannel::~GroupChannel() {
  if (ended_ || rank() != 0 || size() == 1) return;
  std::array<Announcement, 1> end{};
  try {
    own_->broadcast(bytes_of(end), 0, "the end of the group");
  } catch (const std::exception&) {  // it has ended already, and whoever ended it said why
  }
}

GroupChannel::ExclusiveCall::ExclusiveCall(GroupChannel& channel) : channel_(channel) {
  check(!channel_.busy_.exchange(true), "the actors of one group share an engine executor");
}

void GroupChannel::lost(std::string_view words) {
  ended_ = true;
  throw Bug(cat("the group has ended: ", words));
}

void GroupChannel::send(const GroupCall& call) {
  const auto& [header, parts] = call.body;
  check(!call.actor.empty() && !call.type.empty(),
        "a message of a group names its actor and its type");
  std::array<Announcement, 1> size{
      {{call.actor.size(), call.type.size(), header.size(), parts.size()}}};
  std::vector<std::uint64_t> lengths;
  for (const Part& part : parts) lengths.push_back(part.size);
  std::string names = call.actor + call.type + header;
  try {
    own_->broadcast(bytes_of(size), 0, call.type);
    own_->broadcast(bytes_of(names), 0, call.type);
    own_->broadcast(bytes_of(lengths), 0, call.type);
    // The root's bytes are only read; the port takes them as others' that are written.
    for (const Part& part : parts)
      own_->broadcast({const_cast<std::byte*>(part.data), part.size}, 0, call.type);
  } catch (const Failure& failure) {
    lost(failure.what());
  }
}

std::optional<GroupCall> GroupChannel::next() {
  try {
    std::array<Announcement, 1> size{};
    own_->broadcast_idle(bytes_of(size), 0, waiting);
    const auto [actor, type, header, parts] = size[0];
    if (actor == 0) return std::nullopt;
    check(actor + type + header <= max_bytes && parts <= transports::wire::max_parts,
          "a message of the leader has a sane size");
    std::string names(actor + type + header, '\0');
    own_->broadcast(bytes_of(names), 0, waiting);
    std::vector<std::uint64_t> lengths(parts);
    own_->broadcast(bytes_of(lengths), 0, waiting);
    GroupCall call{
        names.substr(0, actor), names.substr(actor, type), {names.substr(actor + type), {}}};
    for (const std::uint64_t length : lengths) {
      check(length <= max_bytes, "a part of the leader's message has a sane size");
      const auto place = std::make_shared_for_overwrite<std::byte[]>(length);
      own_->broadcast({place.get(), length}, 0, call.type);
      call.body.parts.push_back({place, place.get(), length});
    }
    return call;
  } catch (const Failure& failure) {
    lost(failure.what());
  }
}

void GroupChannel::run_on_all_ranks(std::string_view what, const std::function<void()>& work) {
  std::optional<Error> mine;
  try {
    work();
  } catch (const Failure& failure) {
    mine = failure.error();
  } catch (const std::exception& mistake) {
    ended_ = true;
    own_->abort(mistake.what());
    throw;
  }
  std::vector<std::string> outcomes;
  try {
    outcomes = engine::parallel::gather_strings(
        *own_, packed(mine), cat("the outcome of '", what, "'"), (max_error_bytes + 1) * size());
  } catch (const Failure& failure) {
    // Nobody else hears of it any more. (A closed group is no news: the words of whoever ended it
    // are on their way.)
    if (mine && mine->code != Errc::closed)
      log_error(cat("rank ", rank(), " failed before its group ended: ", mine->what));
    lost(failure.what());
  }
  if (auto error = first_error(outcomes)) throw Failure(std::move(*error));
}

}  // namespace troupe::actors::group
