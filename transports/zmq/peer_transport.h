// PeerTransport: the connections of a hub or a spoke: one node, links to its peers, and the thread
// that alone uses the sockets. The thread moves messages between links, sockets and the node,
// grants credit, sends heartbeats and detects silent peers. hub.cpp and spoke.cpp add the sockets:
// who sent a message, where to send one, and who may connect.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>
#include <zmq.hpp>

#include "transports/zmq/refusals.h"
#include "transports/zmq/socket.h"

namespace troupe::transports {

/// Threads of a transport: its own, and two of its ZeroMQ context. ZeroMQ ends the process if one
/// of its threads cannot be started (check_threads()).
inline constexpr int transport_threads = 3;
/// libzmq ends the process where it gets no memory, so what messages and their neighbors need is
/// checked before.
inline constexpr std::size_t transport_bytes = std::size_t{96} << 20;

class PeerTransport {
 public:
  PeerTransport(std::string name, LinkOptions options, const std::vector<std::string>& peers);
  virtual ~PeerTransport();

  void open();
  void close();
  std::uint64_t attach(const std::string& node, Receiver receive);
  void detach();
  /// Sends to this node or, after check_destination(), to a peer.
  Result<> send(Frame frame);
  bool has_peer(const std::string& node) const { return links_.contains(node); }
  OpenRequests open_requests(const std::string& peer);
  /// Runs a job on the transport's thread. From any thread.
  void post(std::function<void()> job);

  const std::string name;
  const LinkOptions options;
  Refusals refusals;

 protected:
  /// Called by senders. An error unless `node` is a peer.
  virtual Result<> check_destination(const std::string& node) const = 0;
  /// Called on the transport's thread. `transmit` and `send_heartbeat` return false when the
  /// connection to the peer no longer exists.
  virtual void begin() = 0;
  virtual void poll_more(std::vector<zmq::pollitem_t>& items) = 0;
  virtual void serve() = 0;  ///< handles everything that was received
  virtual bool transmit(const std::string& peer, wire::WireBody message) = 0;
  virtual bool send_heartbeat(const std::string& peer) = 0;
  virtual void tick(LinkTime now) = 0;
  virtual void end() = 0;  ///< closes the sockets

  /// Handles a decoded message of a peer that has joined.
  void take(const std::string& peer, Incoming in, std::variant<Frame, wire::Control> message);
  /// Calls `each` for every received message; splits bundles.
  void split(const std::string& peer, Incoming in, const std::function<void(Incoming)>& each);
  /// Returns the message, or nullopt when it was refused.
  std::optional<std::variant<Frame, wire::Control>> decode(const std::string& peer, Incoming& in);
  void join(const std::string& peer, const wire::Control& hello);
  void heard(const std::string& peer);
  /// A successor of a lost peer may join.
  void renew(const std::string& peer);
  /// A reply of an incarnation that was taken for lost: its ask has ended, but the node may compare
  /// it with what it got instead.
  void take_late(const std::string& peer, Frame frame);
  void lose(const std::string& peer, const std::string& why);
  /// The hub refuses this process.
  void fenced(const std::string& peer);
  Link::State state_of(const std::string& peer);
  std::uint64_t session_of(const std::string& peer);
  wire::Control hello() const {
    return {wire::Control::Kind::hello, session_, options.window.frames, options.window.bytes};
  }
  std::uint64_t session() const { return session_; }

  zmq::context_t context{1};

 private:
  void run();
  void wait(LinkTime::duration timeout);
  void flush();
  bool send_all(const std::string& peer, std::vector<wire::WireBody> ready);
  void check_timers(LinkTime now);
  bool left();
  void send_bye(const std::string& peer);
  void wake();
  void run_jobs();
  bool deliver(Frame frame);
  void take_frame(const std::string& peer, Frame frame, std::size_t bytes);
  void take_control(const std::string& peer, const wire::Control& control);
  void grant(const std::string& peer);

  const std::uint64_t session_;
  int wake_fd_ = -1;
  std::atomic<bool> woken_ = false, closing_ = false;
  std::thread thread_;
  bool closed_ = false;

  std::mutex jobs_mutex_;
  std::vector<std::function<void()>> jobs_;
  std::mutex links_mutex_;  // guards the links; the map itself does not change
  std::map<std::string, Link> links_;
  std::shared_mutex receiver_mutex_;  // deliver() holds it shared; detach() waits for it
  Receiver receiver_;
  std::uint64_t incarnations_ = 0;
  LinkTime next_tick_{};
  bool sent_bye_ = false;
};

}  // namespace troupe::transports
