#include "transports/mpi/shared_messages.h"

#include <algorithm>
#include <cstring>
#include <ranges>
#include <utility>

#include "engine/base/text/text.h"

namespace troupe::transports::mpi {
namespace {

constexpr std::size_t channels = 2;
/// Bytes of a ring. All ranks take part in a collective at about the same time, and short rings
/// stay in the cache. A transfer is received later than it is sent: the activations of a
/// micro-batch fit.
constexpr std::array<std::size_t, channels> ring_bytes{std::size_t{1} << 20, std::size_t{16} << 20};
constexpr std::size_t pair_bytes = ring_bytes[0] + ring_bytes[1];

/// Layout: positions of all rings, then their buffers, both by channel, sender and receiver.
Ring ring_of(std::span<std::byte> memory, std::size_t size, std::size_t channel, std::size_t from,
             std::size_t to) {
  const std::size_t pairs = size * size, pair = from * size + to;
  auto* positions = reinterpret_cast<Ring::Positions*>(memory.data()) + channel * pairs + pair;
  const std::size_t begin = channels * pairs * sizeof(Ring::Positions) +
                            (channel == 0 ? 0 : pairs * ring_bytes[0]) + pair * ring_bytes[channel];
  return {*positions, memory.subspan(begin, ring_bytes[channel])};
}

}  // namespace

std::vector<int> ranks_in_world(MPI_Comm group) {
  MPI_Group own, world;
  MPI_Comm_group(group, &own);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int size = 0;
  MPI_Group_size(own, &size);
  std::vector<int> ranks(static_cast<std::size_t>(size)), in_world(ranks);
  std::ranges::copy(std::views::iota(0, size), ranks.begin());
  MPI_Group_translate_ranks(own, size, ranks.data(), world, in_world.data());
  MPI_Group_free(&own);
  MPI_Group_free(&world);
  return in_world;
}

std::unique_ptr<SharedMessages> SharedMessages::create(std::shared_ptr<Session> session,
                                                       MPI_Comm group) {
  int rank = 0, size = 1;
  MPI_Comm_rank(group, &rank);
  MPI_Comm_size(group, &size);
  const auto pairs = static_cast<std::size_t>(size) * static_cast<std::size_t>(size);
  auto segment = SharedSegment::create(*session, group,
                                       pairs * (channels * sizeof(Ring::Positions) + pair_bytes));
  if (!segment) return nullptr;
  return std::unique_ptr<SharedMessages>(
      new SharedMessages(std::move(session), std::move(segment), rank, ranks_in_world(group)));
}

SharedMessages::SharedMessages(std::shared_ptr<Session> session,
                               std::unique_ptr<SharedSegment> segment, int rank,
                               const std::vector<int>& in_world)
    : session_(std::move(session)),
      segment_(std::move(segment)),
      size_(static_cast<int>(in_world.size())) {
  const std::size_t n = in_world.size(), own = static_cast<std::size_t>(rank);
  for (std::size_t channel = 0; channel < channels; ++channel)
    for (std::size_t r = 0; r < n; ++r)
      peers_.push_back({static_cast<int>(r), in_world[r],
                        ring_of(segment_->bytes(), n, channel, own, r),
                        ring_of(segment_->bytes(), n, channel, r, own)});
  session_->add(*this);
}

SharedMessages::~SharedMessages() {
  session_->remove(*this);
}

SharedMessages::Peer& SharedMessages::peer(Channel channel, int rank) {
  return peers_[static_cast<std::size_t>(static_cast<int>(channel) * size_ + rank)];
}

void SharedMessages::send(Channel channel, std::span<const std::byte> data, int to,
                          std::uint32_t tag, std::string_view what, int& open) {
  Outgoing message{
      .header = Header{.bytes = data.size(), .tag = tag, .what = {}}, .rest = data, .open = &open};
  what.copy(message.header.what.data(), message.header.what.size() - 1);
  Peer& to_rank = peer(channel, to);
  to_rank.sends.push_back(message);
  advance_sends(to_rank);
}

void SharedMessages::receive(Channel channel, std::span<std::byte> data, int from,
                             std::uint32_t tag, std::string_view what, int& open) {
  peer(channel, from)
      .receives.push_back({.tag = tag, .what = std::string(what), .rest = data, .open = &open});
}

std::vector<int> SharedMessages::ranks_of(const int& open) const {
  const auto counted = [&open](const auto& message) { return message.open == &open; };
  std::vector<int> ranks;
  for (const Peer& peer : peers_)
    if ((std::ranges::any_of(peer.sends, counted) || std::ranges::any_of(peer.receives, counted)) &&
        std::ranges::count(ranks, peer.in_world) == 0)
      ranks.push_back(peer.in_world);
  return ranks;
}

bool SharedMessages::progress() {
  bool moved = false;
  for (Peer& peer : peers_) {
    if (!peer.sends.empty()) moved |= advance_sends(peer);
    if (!peer.receives.empty()) moved |= advance_receives(peer);
  }
  return moved;
}

bool SharedMessages::advance_sends(Peer& peer) const {
  const bool moved = write(peer);
  if (moved) session_->notify(peer.in_world);
  return moved;
}

bool SharedMessages::advance_receives(Peer& peer) const {
  const bool moved = read(peer);
  if (moved && peer.in.take_full()) session_->notify(peer.in_world);
  return moved;
}

bool SharedMessages::write(Peer& peer) const {
  bool moved = false;
  while (!peer.sends.empty()) {
    Outgoing& message = peer.sends.front();
    if (!message.started) {
      if (peer.out.room() < sizeof(Header)) {
        peer.out.set_full();
        return moved;
      }
      peer.out.write(std::as_bytes(std::span(&message.header, 1)));
      message.started = moved = true;
    }
    const std::size_t n = peer.out.write(message.rest);
    message.rest = message.rest.subspan(n);
    moved |= n > 0;
    if (!message.rest.empty()) {
      peer.out.set_full();
      return moved;
    }
    --*message.open;
    peer.sends.pop_front();
  }
  return moved;
}

bool SharedMessages::read(Peer& peer) const {
  bool moved = false;
  while (!peer.receives.empty()) {
    Incoming& message = peer.receives.front();
    if (!message.started) {
      if (peer.in.available() < sizeof(Header)) return moved;
      check_header(peer, message);
      message.started = moved = true;
    }
    const std::size_t n = peer.in.read(message.rest);
    message.rest = message.rest.subspan(n);
    moved |= n > 0;
    if (!message.rest.empty()) return moved;
    --*message.open;
    peer.receives.pop_front();
  }
  return moved;
}

/// Reads the header of a message and compares it with what this rank expects.
void SharedMessages::check_header(Peer& peer, const Incoming& message) const {
  Header header;
  peer.in.read(std::as_writable_bytes(std::span(&header, 1)));
  if (header.bytes == message.rest.size() && header.tag == message.tag) return;
  const std::string other = header.tag == message.tag ? "" : cat(" of '", header.what.data(), "'");
  session_->abort(
      cat("'", message.what, "': expected ", message.rest.size(), " bytes from rank ", peer.rank,
          " of the group, received ", header.bytes, other, " (a bug in troupe, not in your input)"),
      Errc::internal);
}

}  // namespace troupe::transports::mpi
