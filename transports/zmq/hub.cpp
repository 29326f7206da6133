#include "transports/zmq/hub.h"

#include <array>
#include <optional>
#include <set>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/files/environment_error.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "transports/zmq/admission.h"
#include "transports/zmq/peer_transport.h"

namespace troupe::transports {

using wire::Control;

namespace {

std::vector<std::string> names_in(const std::map<std::string, std::string>& spokes) {
  std::vector<std::string> names;
  for (const auto& [key, node] : spokes) names.push_back(node);
  return names;
}

/// An incarnation of a node, which a key names: "rollout-0#2".
struct Incarnation {
  std::string node;
  std::uint64_t number = 1;
};
std::string text_of(const Incarnation& incarnation) {
  return cat(incarnation.node, "#", incarnation.number);
}
Incarnation incarnation_of(const std::string& text) {
  const auto at = text.rfind('#');
  if (at == std::string::npos) return {text, 0};
  return {text.substr(0, at), parse_number<std::uint64_t>(text.substr(at + 1)).value_or(0)};
}

Result<std::map<std::string, std::string>> decode_keys(
    const std::map<std::string, std::string>& spokes) {
  std::map<std::string, std::string> nodes;
  for (const auto& [key, node] : spokes) {
    auto bytes = decode_key(key);
    if (!bytes) return fail(Errc::usage, cat("the key of node '", node, "': ", bytes.error().what));
    nodes.emplace(std::move(*bytes), text_of(Incarnation{node, 1}));
  }
  return nodes;
}

/// Authenticates connections by ZAP 1.0 (rfc.zeromq.org/spec/27). ZeroMQ asks it about every CURVE
/// handshake of its context. It accepts the listed public keys and names their incarnations, and
/// refuses all others.
class ZapHandler {
 public:
  /// `nodes`: public key (32 bytes) -> incarnation. `refusals` outlives this.
  ZapHandler(zmq::context_t& context, std::map<std::string, std::string> nodes, Refusals& refusals);
  zmq::socket_t& socket() { return socket_; }
  void add(std::string key, std::string incarnation) {
    nodes_.insert_or_assign(std::move(key), std::move(incarnation));
  }
  /// Answers all pending requests.
  void handle_requests();

 private:
  zmq::socket_t socket_;
  std::map<std::string, std::string> nodes_;
  Refusals& refusals_;
};

ZapHandler::ZapHandler(zmq::context_t& context, std::map<std::string, std::string> nodes,
                       Refusals& refusals)
    : socket_(context, zmq::socket_type::rep), nodes_(std::move(nodes)), refusals_(refusals) {
  socket_.set(zmq::sockopt::linger, 0);
  socket_.bind("inproc://zeromq.zap.01");
}

void ZapHandler::handle_requests() {
  zmq::message_t part;
  while (socket_.recv(part, zmq::recv_flags::dontwait)) {
    // version, request id, domain, address, identity, mechanism, credentials (the public key)
    std::vector<std::string> request{part.to_string()};
    while (part.more()) {
      static_cast<void>(socket_.recv(part));
      request.push_back(part.to_string());
    }
    const bool curve = request.size() == 7 && request[5] == "CURVE" && request[6].size() == 32;
    const auto known = curve ? nodes_.find(request[6]) : nodes_.end();
    const bool good = known != nodes_.end();
    if (!good) {
      std::array<char, 41> key{};
      if (curve)
        zmq_z85_encode(key.data(), reinterpret_cast<const unsigned char*>(request[6].data()), 32);
      refusals_.add(Refusal::unknown_key, key.data(),
                    "expected a key of this run, found another; does the process belong to another "
                    "run?");
    }
    const std::array<std::string, 6> reply{"1.0",
                                           request.size() > 1 ? request[1] : "",
                                           good ? "200" : "400",
                                           good ? "OK" : "unknown key",
                                           good ? known->second : "",
                                           ""};
    for (std::size_t i = 0; i < reply.size(); ++i)
      socket_.send(zmq::buffer(reply[i]),
                   i + 1 < reply.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
  }
}

}  // namespace

/// Only the transport's thread uses the routes. The key of a connection identifies its node; the
/// routing id that a peer chooses is irrelevant.
class Hub::Spokes final : public PeerTransport {
 public:
  Spokes(const HubOptions& hub, std::map<std::string, std::string> nodes)
      : PeerTransport(hub.name, hub.link, names_in(hub.spokes)),
        zap_(context, std::move(nodes), refusals),
        data_(context, zmq::socket_type::router),
        monitor_(context, zmq::socket_type::pair) {
    for (const auto& node : names_in(hub.spokes)) routes_.emplace(node, Routes());
    set_limits(data_, options);
    set_server_keys(data_, hub.keys);
    data_.set(zmq::sockopt::router_mandatory, 1);
    watch_socket(data_, monitor_);
  }

  /// Returns the bound endpoints.
  Result<std::vector<std::string>> bind(const std::vector<std::string>& endpoints) {
    std::vector<std::string> bound;
    for (const auto& endpoint : endpoints) {
      try {
        data_.bind(endpoint);
      } catch (const zmq::error_t& error) {
        if (error.num() == EMFILE) return fail(socket_error(error));
        return fail(Errc::io, cat("cannot listen at ", quote(endpoint), ": ", error.what(),
                                  "; is another run using it?"));
      }
      bound.push_back(data_.get(zmq::sockopt::last_endpoint));
    }
    admission_.emplace(2 * routes_.size() + spare_connections, bound);
    return bound;
  }

 private:
 public:
  void replace(const std::string& node, const std::string& key, const std::string& why);

 private:
  // Above two for each spoke: of connections whose handshake has not failed yet.
  static constexpr std::size_t spare_connections = 32;
  struct Routes {
    std::string data, heartbeats;
    int fd = -1;  // descriptor of the data connection
    std::uint64_t incarnation = 1;
  };

  Result<> check_destination(const std::string& node) const override {
    if (has_peer(node)) return {};
    return fail(Errc::closed, cat("node '", node, "' is not part of this run"));
  }
  void begin() override {}
  void poll_more(std::vector<zmq::pollitem_t>& items) override {
    for (zmq::socket_t* socket : {&data_, &monitor_, &zap_.socket()})
      items.push_back({socket->handle(), 0, ZMQ_POLLIN, 0});
  }
  void serve() override;
  bool transmit(const std::string& peer, wire::WireBody message) override {
    return send_message(data_, &routes_.at(peer).data, std::move(message));
  }
  bool send_heartbeat(const std::string& peer) override {
    const Routes& routes = routes_.at(peer);
    return send_message(data_, routes.heartbeats.empty() ? &routes.data : &routes.heartbeats,
                        wire::encode_control({Control::Kind::heartbeat, session(), 0, 0}));
  }
  void tick(LinkTime) override { admission_->next_period(); }
  void end() override {
    zmq_socket_monitor(data_.handle(), nullptr, 0);
    for (zmq::socket_t* socket : {&monitor_, &data_, &zap_.socket()}) socket->close();
    if (admission_) admission_->remove();
  }

  void read_monitor();
  bool is_fenced(const Incoming& in, std::uint64_t incarnation);
  void refuse_fenced(Incoming in, const Incarnation& from);
  void dispatch(Incoming in);
  void handle_hello(const std::string& node, const Incoming& in, const Control& hello);
  void handle_heartbeat(const std::string& node, const Incoming& in, const Control& heartbeat);
  void stop_listening_if_complete();
  void second_connection(const std::string& node) {
    refusals.add(
        Refusal::second_connection, node,
        "expected one connection per key, found another; a lost connection is not re-established");
  }

  ZapHandler zap_;
  zmq::socket_t data_, monitor_;
  std::map<std::string, Routes> routes_;
  std::optional<Admission> admission_;  // set by bind()
  std::set<std::string> ended_;         // disconnected nodes; their queued messages are read first
  std::set<std::string> fenced_;        // incarnations
};

void Hub::Spokes::serve() {
  zap_.handle_requests();
  read_monitor();
  for (int i = 0; i < 1024; ++i) {
    auto in = receive_message(data_, true, options);
    if (in) {
      const Incarnation from = incarnation_of(in->node);
      in->node = from.node;
      const bool refused = is_fenced(*in, from.number);
      split(from.node, std::move(*in), [&](Incoming one) {
        refused ? refuse_fenced(std::move(one), from) : dispatch(std::move(one));
      });
      continue;
    }
    for (const auto& node : std::exchange(ended_, {}))
      lose(node, "its connection ended: the process died or was stopped");
    return;
  }
}

// Of an earlier incarnation, or on the connection of one that was taken for lost.
bool Hub::Spokes::is_fenced(const Incoming& in, std::uint64_t incarnation) {
  const auto found = routes_.find(in.node);
  if (found == routes_.end()) return false;
  const Routes& routes = found->second;
  if (incarnation != routes.incarnation) return true;
  return state_of(in.node) == Link::State::lost &&
         (in.route == routes.data || in.route == routes.heartbeats);
}

void Hub::Spokes::refuse_fenced(Incoming in, const Incarnation& from) {
  const std::string route = in.route;
  auto message = decode(from.node, in);
  if (message && std::holds_alternative<Control>(*message) &&
      std::get<Control>(*message).kind == Control::Kind::bye)
    return;  // it ends
  if (fenced_.insert(text_of(from)).second)
    refusals.add(Refusal::fenced, text_of(from),
                 "the process was taken for lost and its work was given to others; it has to end");
  send_message(data_, &route, wire::encode_control({Control::Kind::fenced, session(), 0, 0}));
  if (message && std::holds_alternative<Frame>(*message))
    take_late(from.node, std::get<Frame>(std::move(*message)));
}

void Hub::Spokes::replace(const std::string& node, const std::string& key, const std::string& why) {
  lose(node, why);
  Routes& routes = routes_.at(node);
  routes = {"", "", -1, routes.incarnation + 1};
  ended_.erase(node);
  zap_.add(key, text_of(Incarnation{node, routes.incarnation}));
  renew(node);
  admission_->reopen();
}

void Hub::Spokes::read_monitor() {
  while (auto event = receive_event(monitor_)) {
    if (event->event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL ||
        event->event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL)
      refusals.add(Refusal::failed_handshake, event->endpoint,
                   "expected a CURVE handshake, found none or another protocol");
    if (event->event == ZMQ_EVENT_ACCEPTED) admission_->accepted(event->value);
    if (event->event != ZMQ_EVENT_DISCONNECTED) continue;
    admission_->ended(event->value);
    for (auto& [node, routes] : routes_) {
      if (routes.fd != event->value) continue;
      routes.fd = -1;
      ended_.insert(node);
    }
  }
}

void Hub::Spokes::dispatch(Incoming in) {
  const std::string node = in.node;
  if (!has_peer(node))
    return refusals.add(Refusal::malformed, node,
                        "expected a message with a body from a known key, found none");
  const Link::State state = state_of(node);
  const bool own = in.route == routes_.at(node).data;
  auto message = decode(node, in);
  if (!message) return;
  const auto* control = std::get_if<Control>(&*message);
  if (control && control->kind == Control::Kind::hello && !own)
    return handle_hello(node, in, *control);
  if (control && control->kind == Control::Kind::heartbeat && !own)
    return handle_heartbeat(node, in, *control);
  if (state == Link::State::expected)
    return refusals.add(Refusal::misdirected, node,
                        "expected a hello first, found another message");
  if (!own) return second_connection(node);
  if (state == Link::State::joined) take(node, std::move(in), std::move(*message));
}

void Hub::Spokes::handle_hello(const std::string& node, const Incoming& in,
                               const Control& hello_of_spoke) {
  if (state_of(node) != Link::State::expected) return second_connection(node);
  read_monitor();  // an older connection with the same descriptor ended before this one was
                   // established
  Routes& routes = routes_.at(node);
  routes.data = in.route;
  routes.fd = in.fd;
  if (transmit(node, wire::encode_control(hello()))) join(node, hello_of_spoke);
}

void Hub::Spokes::handle_heartbeat(const std::string& node, const Incoming& in,
                                   const Control& heartbeat) {
  const Link::State state = state_of(node);
  if (state == Link::State::expected) return;  // its hello will arrive on the other connection
  if (heartbeat.session != session_of(node)) return second_connection(node);
  routes_.at(node).heartbeats = in.route;
  if (state == Link::State::joined) heard(node);
  stop_listening_if_complete();
}

void Hub::Spokes::stop_listening_if_complete() {
  if (admission_->finished()) return;
  for (const auto& [node, routes] : routes_)
    if (routes.heartbeats.empty() && state_of(node) != Link::State::lost) return;
  admission_->finish();
}

Hub::Hub(Spokes& shared, std::unique_ptr<PeerTransport> owned, std::vector<std::string> endpoints)
    : ZmqTransport(std::move(owned)), spokes_(shared), endpoints_(std::move(endpoints)) {
}

OpenRequests Hub::open_requests(const std::string& node) const {
  return spokes_.open_requests(node);
}

Result<> Hub::replace(const std::string& node, const std::string& public_key,
                      const std::string& why) {
  auto key = decode_key(public_key);
  RETURN_IF_ERROR(key);
  if (!spokes_.has_peer(node))
    return fail(Errc::closed, cat("node '", node, "' is not part of this run"));
  spokes_.post([this, node, key = std::move(*key), why] { spokes_.replace(node, key, why); });
  return {};
}

Result<std::unique_ptr<Hub>> Hub::bind(HubOptions options) {
  auto nodes = decode_keys(options.spokes);
  RETURN_IF_ERROR(nodes);
  RETURN_IF_ERROR(decode_key(options.keys.secret_key));
  RETURN_IF_ERROR(check_threads(transport_threads, "the transport of the controller"));
  RETURN_IF_ERROR(check_address_space(transport_bytes, "the transport of the controller"));
  std::unique_ptr<Spokes> spokes;
  try {
    spokes = std::make_unique<Spokes>(options, std::move(*nodes));
  } catch (const zmq::error_t& error) {
    return fail(socket_error(error));
  }
  auto bound = spokes->bind(options.endpoints);
  Spokes& shared = *spokes;
  std::unique_ptr<Hub> hub(
      new Hub(shared, std::move(spokes), bound ? std::move(*bound) : std::vector<std::string>()));
  RETURN_IF_ERROR(bound);
  return hub;
}

}  // namespace troupe::transports
