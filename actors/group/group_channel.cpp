#include "actors/group/group_channel.h"

#include <array>
#include <cstring>
#include <vector>

#include "engine/base/errors/check.h"
#include "engine/base/errors/error.h"
#include "engine/base/files/environment_error.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/progress.h"
#include "engine/parallel/all_reduce.h"
#include "transports/wire/writer.h"

namespace troupe::actors::group {
namespace {

using transports::wire::BodyPart;

constexpr auto waiting = "the next message of the group's leader";
// Maximum size of a message.
constexpr std::uint64_t max_bytes = std::uint64_t{1} << 40;
constexpr std::size_t max_error_bytes = 4096;

/// Sizes of the next message, sent before it. All zero: the group ends.
struct MessageSizes {
  std::uint64_t actor = 0, type = 0, header = 0, parts = 0;
};

std::span<std::byte> bytes_of(auto& values) {
  return std::as_writable_bytes(std::span(values));
}

/// A rank's outcome in wire form: empty, or the code and text of its error.
std::string encode_outcome(const std::optional<Error>& error) {
  if (!error) return {};
  return static_cast<char>(error->code) + error->what.substr(0, max_error_bytes);
}

Error decode_error(const std::string& text) {
  return {static_cast<Errc>(text[0]), text.substr(1)};
}

std::optional<Error> first_error(const std::vector<std::string>& outcomes) {
  bool same = true;
  for (const auto& outcome : outcomes) same &= outcome == outcomes[0];
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (outcomes[rank].empty()) continue;
    Error error = decode_error(outcomes[rank]);
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
  std::array<MessageSizes, 1> end{};
  try {
    own_->broadcast(bytes_of(end), 0, "the end of the group");
  } catch (const std::exception&) {
    // The group has already ended, and the rank that ended it reported why.
  }
}

GroupChannel::ExclusiveCall::ExclusiveCall(GroupChannel& channel) : channel_(channel) {
  check(!channel_.busy_.exchange(true), "the actors of a group must share an engine executor");
}

void GroupChannel::end_group(std::string_view why) {
  ended_ = true;
  if (is_out_of_memory(why)) throw Failure({Errc::full, std::string(why)});
  throw Bug(cat("the group has ended: ", why));
}

void GroupChannel::send(const GroupCall& call) {
  const auto& [header, parts] = call.body;
  check(!call.actor.empty() && !call.type.empty(),
        "a group call needs an actor and a message type");
  std::array<MessageSizes, 1> size{
      {{call.actor.size(), call.type.size(), header.size(), parts.size()}}};
  std::vector<std::uint64_t> lengths;
  for (const BodyPart& part : parts) lengths.push_back(part.size);
  std::string names = call.actor + call.type + header;
  try {
    own_->broadcast(bytes_of(size), 0, call.type);
    own_->broadcast(bytes_of(names), 0, call.type);
    own_->broadcast(bytes_of(lengths), 0, call.type);
    // broadcast() only reads the root's bytes; its signature is shared with the ranks that write.
    for (const BodyPart& part : parts)
      own_->broadcast({const_cast<std::byte*>(part.data), part.size}, 0, call.type);
  } catch (const Failure& failure) {
    end_group(failure.what());
  }
}

std::optional<GroupCall> GroupChannel::next() {
  try {
    std::array<MessageSizes, 1> size{};
    own_->broadcast_idle(bytes_of(size), 0, waiting);
    const auto [actor, type, header, parts] = size[0];
    if (actor == 0) return std::nullopt;
    check(actor + type + header <= max_bytes && parts <= transports::wire::max_parts,
          "the leader announced a message beyond the size limit");
    std::string names(actor + type + header, '\0');
    own_->broadcast(bytes_of(names), 0, waiting);
    std::vector<std::uint64_t> lengths(parts);
    own_->broadcast(bytes_of(lengths), 0, waiting);
    GroupCall call{
        names.substr(0, actor), names.substr(actor, type), {names.substr(actor + type), {}}};
    for (const std::uint64_t length : lengths) {
      check(length <= max_bytes, "the leader announced a message part beyond the size limit");
      const auto bytes = std::make_shared_for_overwrite<std::byte[]>(length);
      own_->broadcast({bytes.get(), length}, 0, call.type);
      call.body.parts.push_back({bytes, bytes.get(), length});
    }
    return call;
  } catch (const Failure& failure) {
    end_group(failure.what());
  }
}

void GroupChannel::run_on_all_ranks(std::string_view what, const std::function<void()>& work) {
  const progress::Operation watched(cat("'", what, "'"));
  std::optional<Error> mine;
  try {
    work();
  } catch (const Failure& failure) {
    mine = failure.error();
  } catch (const std::exception& mistake) {
    // The other ranks may wait for this one in a collective of the work.
    ended_ = true;
    const std::optional<Error> outside = environment_error(mistake);
    own_->abort(outside ? outside->what : mistake.what());
    if (outside) throw Failure(*outside);
    throw;
  }
  std::vector<std::string> outcomes;
  try {
    outcomes = engine::parallel::gather_strings(*own_, encode_outcome(mine),
                                                cat("the outcome of '", what, "'"),
                                                (max_error_bytes + 1) * size());
  } catch (const Failure& failure) {
    // Logged, because no other rank will receive this rank's error. (An error of a closed group
    // only repeats the reason that the rank that closed it reports.)
    if (mine && mine->code != Errc::closed)
      log_error(cat("rank ", rank(), " failed before its group ended: ", mine->what));
    end_group(failure.what());
  }
  if (auto error = first_error(outcomes)) throw Failure(std::move(*error));
}

}  // namespace troupe::actors::group
