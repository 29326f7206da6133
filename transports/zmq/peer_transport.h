// Station: what hub and spoke have in common: one node, links to peers, and the thread that alone
// touches the sockets. It moves messages from the links to the sockets and from the sockets to the
// node, answers with credit, sends beats and notices silence. What differs (who a message is from,
// where one goes, who may connect) is in hub.cpp and spoke.cpp.
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

class Station {
 public:
  Station(std::string name, LinkOptions options, const std::vector<std::string>& peers);
  virtual ~Station();

  void open();
  void close();
  std::uint64_t attach(const std::string& node, Receiver receive);
  void detach();
  /// To `frame.to.node`, which is this node or a peer.
  Result<> send(Frame frame);
  bool has_peer(const std::string& node) const { return links_.contains(node); }

  const std::string name;
  const LinkOptions options;
  Refusals refusals;

 protected:
  /// The station's own thread calls these. `transmit` and `beat` say false when the peer's
  /// connection is gone.
  virtual void begin() = 0;
  virtual void poll_more(std::vector<zmq::pollitem_t>& items) = 0;
  virtual void serve() = 0;  ///< everything that has come in
  virtual bool transmit(const std::string& peer, wire::WireBody message) = 0;
  virtual bool beat(const std::string& peer) = 0;
  virtual void tick(LinkTime now) = 0;
  virtual void end() = 0;  ///< close the sockets

  /// A message of `peer` on its own connection, after its hello. `in` was received whole.
  void take(const std::string& peer, Incoming in, std::variant<Frame, wire::Control> message);
  /// What has come in, one by one: a bundle is taken apart.
  void split(const std::string& peer, Incoming in, const std::function<void(Incoming)>& each);
  /// The message, or nothing when it was refused.
  std::optional<std::variant<Frame, wire::Control>> decode(const std::string& peer, Incoming& in);
  void join(const std::string& peer, const wire::Control& hello);
  void heard(const std::string& peer);
  void lose(const std::string& peer, const std::string& why);
  Link::State state_of(const std::string& peer);
  std::uint64_t session_of(const std::string& peer);
  wire::Control hello() const {
    return {wire::Control::Kind::hello, session_, options.window.frames, options.window.bytes};
  }
  std::uint64_t session() const { return session_; }

  zmq::context_t context{1};

 private:
  void run();
  void wait(LinkTime::duration most);
  void flush();
  bool send_all(const std::string& peer, std::vector<wire::WireBody> ready);
  void keep_time(LinkTime now);
  bool left();
  void goodbye(const std::string& peer);
  void wake();
  bool deliver(Frame frame);
  void take_frame(const std::string& peer, Frame frame, std::size_t bytes);
  void take_control(const std::string& peer, const wire::Control& control);
  void grant(const std::string& peer);

  const std::uint64_t session_;
  int wake_fd_ = -1;
  std::atomic<bool> woken_ = false, closing_ = false;
  std::thread thread_;
  bool closed_ = false;

  std::mutex links_mutex_;  // the links; their map does not change
  std::map<std::string, Link> links_;
  std::shared_mutex receiver_mutex_;  // shared by whoever delivers; detach() waits for them
  Receiver receiver_;
  std::uint64_t incarnations_ = 0;
  LinkTime next_tick_{};
  bool said_goodbye_ = false;
};

}  // namespace troupe::transports
