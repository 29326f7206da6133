// SharedMessages: messages between the ranks of a group on one host, through shared memory.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transports/mpi/ring.h"
#include "transports/mpi/shared_segment.h"

namespace troupe::transports::mpi {

/// The ranks of a group as those of MPI_COMM_WORLD.
std::vector<int> ranks_in_world(MPI_Comm group);

/// Messages of collectives, and those of start_send() and start_receive(), which have an order of
/// their own.
enum class Channel { collectives, transfers };

/// Two rings from each rank to each other one. A sender copies into a ring what fits when it starts
/// a message, so the receiver can have it while the sender computes, which MPI's messages above a
/// few KiB cannot: both processes have to be in MPI for them. What does not fit is copied by
/// progress().
class SharedMessages : public Progress {
 public:
  /// Collective over `group`. Null on every rank when the ranks cannot share memory.
  static std::unique_ptr<SharedMessages> create(std::shared_ptr<Session> session, MPI_Comm group);
  ~SharedMessages() override;

  /// Starts a message to or from a rank, after those that were started before. `tag` and the length
  /// have to be equal on both sides; `what` names the message in the error of the receiver
  /// otherwise. `open` is decremented when `data` may be reused or has been received; it and `data`
  /// stay valid until then.
  void send(Channel channel, std::span<const std::byte> data, int to, std::uint32_t tag,
            std::string_view what, int& open);
  void receive(Channel channel, std::span<std::byte> data, int from, std::uint32_t tag,
               std::string_view what, int& open);

  /// The ranks of MPI_COMM_WORLD with messages that `open` counts. Under the session's lock().
  std::vector<int> ranks_of(const int& open) const;

  bool progress() override;

 private:
  struct Header {
    std::uint64_t bytes;
    std::uint32_t tag;
    std::array<char, 52> what;  ///< the beginning of the name, ended by a zero
  };
  static_assert(sizeof(Header) == 64);
  struct Outgoing {
    Header header;
    bool started = false;  ///< the header is in the ring
    std::span<const std::byte> rest;
    int* open;
  };
  struct Incoming {
    std::uint32_t tag;
    std::string what;
    bool started = false;
    std::span<std::byte> rest;
    int* open;
  };
  /// The messages to and from one rank in one channel.
  struct Peer {
    int rank, in_world;  ///< its number in the group and in MPI_COMM_WORLD
    Ring out, in;
    std::deque<Outgoing> sends{};
    std::deque<Incoming> receives{};
  };

  SharedMessages(std::shared_ptr<Session> session, std::unique_ptr<SharedSegment> segment, int rank,
                 const std::vector<int>& in_world);
  Peer& peer(Channel channel, int rank);
  bool advance_sends(Peer& peer) const;
  bool advance_receives(Peer& peer) const;
  bool write(Peer& peer) const;
  bool read(Peer& peer) const;
  void check_header(Peer& peer, const Incoming& message) const;

  std::shared_ptr<Session> session_;
  std::unique_ptr<SharedSegment> segment_;
  int size_;
  std::vector<Peer> peers_;  ///< by channel and rank; this rank's own are not used
};

}  // namespace troupe::transports::mpi
