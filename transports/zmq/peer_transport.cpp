#include "transports/zmq/peer_transport.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/log.h"
#include "engine/base/quiet_thread.h"
#include "engine/base/text.h"

namespace troupe::transports {

using wire::Control;

Station::Station(std::string node, LinkOptions given, const std::vector<std::string>& peers)
    : name(std::move(node)),
      options(std::move(given)),
      session_((std::uint64_t{std::random_device{}()} << 32) | std::random_device{}()),
      wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  check(wake_fd_ >= 0, "no eventfd");
  for (const auto& peer : peers) links_.emplace(peer, Link(peer, options.window));
}

Station::~Station() {
  check(!thread_.joinable(), "a station is closed before it ends");
  ::close(wake_fd_);
}

std::uint64_t Station::attach(const std::string& node, Receiver receive) {
  const std::unique_lock lock(receiver_mutex_);
  check(node == name, "a process has one node, and its transport was made for another");
  check(!receiver_, "two nodes of one transport have the same name");
  receiver_ = std::move(receive);
  return ++incarnations_;
}

void Station::detach() {
  const std::unique_lock lock(receiver_mutex_);
  receiver_ = nullptr;
}

bool Station::deliver(Frame frame) {
  const std::shared_lock lock(receiver_mutex_);
  if (!receiver_) return false;
  receiver_(std::move(frame));
  return true;
}

Result<> Station::send(Frame frame) {
  if (frame.to.node == name) {
    if (!deliver(std::move(frame))) return fail(Errc::closed, cat("node '", name, "' has stopped"));
    return {};
  }
  const auto link = links_.find(frame.to.node);
  check(link != links_.end(), "a station sends to its peers");
  Result<wire::WireBody> message =
      wire::encode_to_send(frame, options.most_bytes, options.most_header);
  RETURN_IF_ERROR(message);
  {
    const std::lock_guard lock(links_mutex_);
    if (Result<> taken = link->second.offer(frame, std::move(*message)); !taken) return taken;
  }
  wake();
  return {};
}

void Station::wake() {
  if (woken_.exchange(true)) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written =
      ::write(wake_fd_, &one, sizeof one);  // fails only when it is awake already
}

void Station::open() {
  check(!thread_.joinable() && !closed_, "a transport is opened once");
  thread_ = quiet_thread("troupe/zmq", [this] { run(); });
}

void Station::close() {
  if (std::exchange(closed_, true)) return;
  closing_ = true;
  wake();
  if (thread_.joinable())
    thread_.join();
  else
    end();
  context.close();  // waits for what was sent, at most as long as the sockets linger
}

void Station::run() {
  try {
    begin();
    next_tick_ = std::chrono::steady_clock::now();
    for (LinkTime until = LinkTime::max();;) {
      const LinkTime now = std::chrono::steady_clock::now();
      if (now >= next_tick_) keep_time(now);
      if (closing_ && until == LinkTime::max()) until = now + options.linger;
      if (closing_ && (now >= until || left())) break;
      wait(std::min(next_tick_, until) - now);
      serve();
      if (!said_goodbye_) flush();
    }
  } catch (const std::exception& error) {
    log_error(cat("the transport of node '", name, "' failed: ", error.what()));
    for (const auto& [peer, link] : links_) lose(peer, cat("the transport failed: ", error.what()));
  }
  end();
}

void Station::wait(LinkTime::duration most) {
  std::vector<zmq::pollitem_t> items{{nullptr, wake_fd_, ZMQ_POLLIN, 0}};
  poll_more(items);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(most);
  const int ready = zmq_poll(reinterpret_cast<zmq_pollitem_t*>(items.data()),
                             static_cast<int>(items.size()), std::max(left.count(), 0L));
  if (ready < 0 && zmq_errno() != EINTR) throw zmq::error_t();
  if ((items[0].revents & ZMQ_POLLIN) == 0) return;
  // Read, then cleared: whoever finds it set in between has its message in a link, which is looked
  // at after this.
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(wake_fd_, &count, sizeof count);
  woken_ = false;
}

void Station::flush() {
  for (auto& [peer, link] : links_) {
    std::vector<wire::WireBody> ready;
    {
      const std::lock_guard lock(links_mutex_);
      while (auto message = link.next()) ready.push_back(std::move(*message));
    }
    if (!send_all(peer, std::move(ready))) lose(peer, "its connection ended");
  }
}

/// When nothing is queued any more, goodbye is said; a peer's goodbye in return shows that it has
/// everything. (A socket that is closed with something unread in it may take back what it sent.)
bool Station::left() {
  bool queued = false, joined = false;
  {
    const std::lock_guard lock(links_mutex_);
    for (const auto& [peer, link] : links_) {
      if (link.state() != Link::State::joined) continue;
      joined = true;
      queued |= !link.idle();
    }
  }
  if (queued) return false;
  if (!said_goodbye_) {
    for (const auto& [peer, link] : links_) goodbye(peer);
  }
  said_goodbye_ = true;
  return !joined;
}

void Station::goodbye(const std::string& peer) {
  if (state_of(peer) == Link::State::joined)
    transmit(peer, wire::encode_control({Control::Kind::bye, session_, 0, 0}));
}

void Station::keep_time(LinkTime now) {
  // When this thread itself was held up (a laptop that slept, SIGSTOP), what came in meanwhile is
  // read first.
  const bool on_time = now - next_tick_ < options.silence / 2;
  next_tick_ = now + options.silence / 5;
  for (const auto& [peer, link] : links_) {
    bool silent = false;
    {
      const std::lock_guard lock(links_mutex_);
      silent = on_time && link.silent_since(now - options.silence);
    }
    if (silent)
      lose(peer, cat("nothing was heard of it for ",
                     to_text(std::chrono::duration<double>(options.silence).count()), " s"));
    if (state_of(peer) == Link::State::joined && !beat(peer)) lose(peer, "its connection ended");
  }
  tick(now);
}

Link::State Station::state_of(const std::string& peer) {
  const std::lock_guard lock(links_mutex_);
  return links_.at(peer).state();
}

std::uint64_t Station::session_of(const std::string& peer) {
  const std::lock_guard lock(links_mutex_);
  return links_.at(peer).session();
}

void Station::join(const std::string& peer, const Control& hello) {
  {
    const std::lock_guard lock(links_mutex_);
    links_.at(peer).join(hello.session, {hello.frames, hello.bytes},
                         std::chrono::steady_clock::now());
  }
  if (options.on_peer) options.on_peer({peer, PeerEvent::What::joined, ""});
}

void Station::lose(const std::string& peer, const std::string& why) {
  std::vector<Frame> errors;
  {
    const std::lock_guard lock(links_mutex_);
    Link& link = links_.at(peer);
    if (link.state() == Link::State::lost) return;
    errors = link.lose(why);
  }
  for (auto& error : errors) deliver(std::move(error));
  if (options.on_peer && !closing_) options.on_peer({peer, PeerEvent::What::lost, why});
}

std::optional<std::variant<Frame, Control>> Station::decode(const std::string& peer, Incoming& in) {
  if (in.oversized) {
    refusals.add(Refusal::oversized, peer,
                 cat("expected at most ", options.most_bytes, " bytes, ", options.most_header,
                     " of them in the header, found ", in.bytes, " or more"));
    return std::nullopt;
  }
  auto message = wire::decode_message(std::move(in.message), peer);
  if (message) return std::move(*message);
  refusals.add(Refusal::malformed, peer, message.error().what);
  return std::nullopt;
}

void Station::heard(const std::string& peer) {
  const std::lock_guard lock(links_mutex_);
  links_.at(peer).heard(std::chrono::steady_clock::now());
}

void Station::take(const std::string& peer, Incoming in, std::variant<Frame, Control> message) {
  heard(peer);
  if (auto* frame = std::get_if<Frame>(&message))
    take_frame(peer, std::move(*frame), in.bytes);
  else
    take_control(peer, std::get<Control>(message));
}

void Station::take_frame(const std::string& peer, Frame frame, std::size_t bytes) {
  bool tell = false;
  {
    const std::lock_guard lock(links_mutex_);
    Link& link = links_.at(peer);
    if (frame.kind != Kind::request) link.answered(frame.id);
    tell = link.received(bytes);
  }
  if (frame.from.node != peer) {
    refusals.add(Refusal::impersonation, peer,
                 cat("expected frames in its own name, found one from ", quote(frame.from.node)));
  } else if (frame.to.node != name) {
    refusals.add(Refusal::misdirected, peer,
                 cat("expected frames to '", name, "', found one to ", quote(frame.to.node)));
  } else {
    deliver(std::move(frame));
  }
  if (tell) grant(peer);
}

void Station::grant(const std::string& peer) {
  Window totals;
  {
    const std::lock_guard lock(links_mutex_);
    totals = links_.at(peer).received_totals();
  }
  if (!transmit(peer, wire::encode_control(
                          {Control::Kind::grant, session_, totals.frames, totals.bytes})))
    lose(peer, "its connection ended");
}

void Station::take_control(const std::string& peer, const Control& control) {
  if (control.kind == Control::Kind::bye) {
    if (!said_goodbye_) goodbye(peer);
    return lose(peer, "it left");
  }
  if (control.kind == Control::Kind::beat) return;
  bool good = control.kind == Control::Kind::grant;
  if (good) {
    const std::lock_guard lock(links_mutex_);
    good = links_.at(peer).consumed({control.frames, control.bytes});
  }
  if (!good)
    refusals.add(Refusal::malformed, peer,
                 "expected credit for what was sent, found a second hello or credit for more");
}

}  // namespace troupe::transports
