#include "transports/zmq/spoke.h"

#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/files/environment_error.h"
#include "engine/base/text/text.h"
#include "transports/zmq/peer_transport.h"

namespace troupe::transports {

using wire::Control;

/// A spoke has two connections, one for frames and one for heartbeats, so that heartbeats do not
/// queue behind a gigabyte of weights.
class Spoke::HubLink final : public PeerTransport {
 public:
  explicit HubLink(SpokeOptions spoke)
      : PeerTransport(spoke.name, spoke.link, {spoke.hub}),
        given_(std::move(spoke)),
        data_(context, zmq::socket_type::dealer),
        heartbeats_(context, zmq::socket_type::dealer),
        monitor_(context, zmq::socket_type::pair) {
    for (zmq::socket_t* socket : {&data_, &heartbeats_}) {
      set_limits(*socket, options);
      set_client_keys(*socket, given_.keys, given_.hub_public_key);
    }
    heartbeats_.set(zmq::sockopt::linger, 0);
    watch_socket(data_, monitor_);
  }

 private:
  const std::string& hub() const { return given_.hub; }
  Result<> check_destination(const std::string& node) const override {
    if (node == hub()) return {};
    return fail(Errc::unsupported,
                cat("node '", name, "' sends only to its hub '", hub(), "', not to '", node, "'"));
  }
  void begin() override {
    until_ = std::chrono::steady_clock::now() + options.join;
    data_.connect(given_.endpoint);
    heartbeats_.connect(given_.endpoint);
    send_message(data_, nullptr, wire::encode_control(hello()));
  }
  void poll_more(std::vector<zmq::pollitem_t>& items) override {
    for (zmq::socket_t* socket : {&data_, &heartbeats_, &monitor_})
      items.push_back({socket->handle(), 0, ZMQ_POLLIN, 0});
  }
  void serve() override;
  bool transmit(const std::string&, wire::WireBody message) override {
    return send_message(data_, nullptr, std::move(message));
  }
  bool send_heartbeat(const std::string&) override {
    return send_message(heartbeats_, nullptr,
                        wire::encode_control({Control::Kind::heartbeat, session(), 0, 0}));
  }
  void tick(LinkTime now) override {
    if (now < until_ || state_of(hub()) != Link::State::expected) return;
    const auto seconds = to_text(std::chrono::duration<double>(options.join).count());
    lose(hub(), cat("it did not answer at ", given_.endpoint, " within ", seconds,
                    " s; check that it is running and that its key is correct"));
  }
  void end() override {
    zmq_socket_monitor(data_.handle(), nullptr, 0);
    if (state_of(hub()) != Link::State::joined)
      data_.set(zmq::sockopt::linger, 0);  // the hub will not receive what is queued
    for (zmq::socket_t* socket : {&monitor_, &data_, &heartbeats_}) socket->close();
  }

  void read_monitor();
  void take_data(Incoming in);
  void take_heartbeat(Incoming in);

  SpokeOptions given_;
  zmq::socket_t data_, heartbeats_, monitor_;
  LinkTime until_{};
  bool handshake_done_ = false;  // on data_
  std::string ended_;            // why the connection ended; queued messages are read first
};

void Spoke::HubLink::serve() {
  read_monitor();
  for (int i = 0; i < 1024; ++i) {
    auto in = receive_message(data_, false, options);
    if (!in) {
      if (!ended_.empty()) lose(hub(), ended_);
      break;
    }
    split(hub(), std::move(*in), [this](Incoming one) { take_data(std::move(one)); });
  }
  while (auto in = receive_message(heartbeats_, false, options)) take_heartbeat(std::move(*in));
}

void Spoke::HubLink::read_monitor() {
  while (auto event = receive_event(monitor_)) {
    if (event->event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) handshake_done_ = true;
    if (event->event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
      ended_ = "it rejected the key of this process";
    if (event->event == ZMQ_EVENT_DISCONNECTED && handshake_done_)
      ended_ = "its connection ended: the process died or was stopped";
  }
}

void Spoke::HubLink::take_data(Incoming in) {
  const Link::State state = state_of(hub());
  auto message = decode(hub(), in);
  if (!message || state == Link::State::lost) return;
  const auto* control = std::get_if<Control>(&*message);
  if (state == Link::State::joined) return take(hub(), std::move(in), std::move(*message));
  if (control && control->kind == Control::Kind::hello) return join(hub(), *control);
  refusals.add(Refusal::misdirected, hub(), "expected a hello first, found another message");
}

void Spoke::HubLink::take_heartbeat(Incoming in) {
  auto message = decode(hub(), in);
  if (!message) return;
  const auto* control = std::get_if<Control>(&*message);
  if (control && control->kind == Control::Kind::fenced) return fenced(hub());
  if (!control || control->kind != Control::Kind::heartbeat)
    return refusals.add(
        Refusal::misdirected, hub(),
        "expected only heartbeats on the heartbeat connection, found another message");
  if (control->session == session_of(hub())) heard(hub());
}

Spoke::Spoke(std::unique_ptr<HubLink> hub) : ZmqTransport(std::move(hub)) {
}

Result<std::unique_ptr<Spoke>> Spoke::create(SpokeOptions options) {
  for (const std::string* key :
       {&options.keys.public_key, &options.keys.secret_key, &options.hub_public_key}) {
    RETURN_IF_ERROR(decode_key(*key));
  }
  if (!options.endpoint.starts_with("ipc://") && !options.endpoint.starts_with("tcp://"))
    return fail(Errc::usage, cat("expected an endpoint that begins with ipc:// or tcp://, found ",
                                 quote(options.endpoint)));
  RETURN_IF_ERROR(check_threads(transport_threads, "the transport of a group"));
  RETURN_IF_ERROR(check_address_space(transport_bytes, "the transport of a group"));
  try {
    return std::unique_ptr<Spoke>(new Spoke(std::make_unique<HubLink>(std::move(options))));
  } catch (const zmq::error_t& error) {
    return fail(socket_error(error));
  }
}

}  // namespace troupe::transports
