#include "transports/zmq/peer_transport.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/files/environment_error.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/thread_with_blocked_signals.h"

namespace troupe::transports {

using wire::Control;

PeerTransport::PeerTransport(std::string node, LinkOptions given,
                             const std::vector<std::string>& peers)
    : name(std::move(node)),
      options(std::move(given)),
      session_((std::uint64_t{std::random_device{}()} << 32) | std::random_device{}()),
      wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (wake_fd_ < 0) throw Failure({Errc::io, cat("cannot create an eventfd: ", reason_of(errno))});
  for (const auto& peer : peers)
    links_.emplace(peer, Link(peer, options.window, options.stateless.contains(peer)));
}

PeerTransport::~PeerTransport() {
  check(!thread_.joinable(), "a transport must be closed before it is destroyed");
  ::close(wake_fd_);
}

std::uint64_t PeerTransport::attach(const std::string& node, Receiver receive) {
  const std::unique_lock lock(receiver_mutex_);
  check(node == name, "a transport was attached to a node other than its own");
  check(!receiver_, "two nodes of one transport have the same name");
  receiver_ = std::move(receive);
  return ++incarnations_;
}

void PeerTransport::detach() {
  const std::unique_lock lock(receiver_mutex_);
  receiver_ = nullptr;
}

bool PeerTransport::deliver(Frame frame) {
  const std::shared_lock lock(receiver_mutex_);
  if (!receiver_) return false;
  receiver_(std::move(frame));
  return true;
}

Result<> PeerTransport::send(Frame frame) {
  if (frame.to.node == name) {
    if (!deliver(std::move(frame))) return fail(Errc::closed, cat("node '", name, "' has stopped"));
    return {};
  }
  RETURN_IF_ERROR(check_destination(frame.to.node));
  Link& link = links_.at(frame.to.node);
  Result<wire::WireBody> message =
      wire::encode_to_send(frame, options.max_bytes, options.max_header_bytes);
  RETURN_IF_ERROR(message);
  {
    const std::lock_guard lock(links_mutex_);
    if (Result<> taken = link.offer(frame, std::move(*message), std::chrono::steady_clock::now());
        !taken)
      return taken;
  }
  wake();
  return {};
}

OpenRequests PeerTransport::open_requests(const std::string& peer) {
  const std::lock_guard lock(links_mutex_);
  return links_.at(peer).open_requests();
}

void PeerTransport::post(std::function<void()> job) {
  {
    const std::lock_guard lock(jobs_mutex_);
    jobs_.push_back(std::move(job));
  }
  wake();
}

void PeerTransport::run_jobs() {
  std::vector<std::function<void()>> jobs;
  {
    const std::lock_guard lock(jobs_mutex_);
    jobs.swap(jobs_);
  }
  for (const auto& job : jobs) job();
}

void PeerTransport::wake() {
  if (woken_.exchange(true)) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written =
      ::write(wake_fd_, &one, sizeof one);  // fails only when the thread is already awake
}

void PeerTransport::open() {
  check(!thread_.joinable() && !closed_, "a transport can be opened only once");
  thread_ = thread_with_blocked_signals("troupe/zmq", [this] { run(); });
}

void PeerTransport::close() {
  if (std::exchange(closed_, true)) return;
  closing_ = true;
  wake();
  if (thread_.joinable())
    thread_.join();
  else
    end();
  context.close();  // waits for sent messages, at most for the sockets' linger time
}

void PeerTransport::run() {
  try {
    begin();
    next_tick_ = std::chrono::steady_clock::now();
    for (LinkTime until = LinkTime::max();;) {
      const LinkTime now = std::chrono::steady_clock::now();
      if (now >= next_tick_) check_timers(now);
      if (closing_ && until == LinkTime::max()) until = now + options.linger;
      if (closing_ && (now >= until || left())) break;
      wait(std::min(next_tick_, until) - now);
      run_jobs();
      serve();
      if (!sent_bye_) flush();
    }
  } catch (const std::exception& error) {
    log_error(cat("the transport of node '", name, "' failed: ", error.what()));
    for (const auto& [peer, link] : links_) lose(peer, cat("the transport failed: ", error.what()));
  }
  end();
}

void PeerTransport::wait(LinkTime::duration timeout) {
  std::vector<zmq::pollitem_t> items{{nullptr, wake_fd_, ZMQ_POLLIN, 0}};
  poll_more(items);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(timeout);
  const int ready = zmq_poll(reinterpret_cast<zmq_pollitem_t*>(items.data()),
                             static_cast<int>(items.size()), std::max(left.count(), 0L));
  if (ready < 0 && zmq_errno() != EINTR) throw zmq::error_t();
  if ((items[0].revents & ZMQ_POLLIN) == 0) return;
  // Read first, then clear: a sender that finds the flag set has already queued its message in a
  // link, and the links are read after this.
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(wake_fd_, &count, sizeof count);
  woken_ = false;
}

void PeerTransport::flush() {
  for (auto& [peer, link] : links_) {
    std::vector<wire::WireBody> ready;
    {
      const std::lock_guard lock(links_mutex_);
      while (auto message = link.next()) ready.push_back(std::move(*message));
    }
    if (!send_all(peer, std::move(ready))) lose(peer, "its connection ended");
  }
}

/// Sends a bye when nothing is queued. The peer's bye in return confirms that it received
/// everything. (Closing a socket that holds unread messages may discard messages that it sent.)
bool PeerTransport::left() {
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
  if (!sent_bye_) {
    for (const auto& [peer, link] : links_) send_bye(peer);
  }
  sent_bye_ = true;
  return !joined;
}

void PeerTransport::send_bye(const std::string& peer) {
  if (state_of(peer) == Link::State::joined)
    transmit(peer, wire::encode_control({Control::Kind::bye, session_, 0, 0}));
}

void PeerTransport::check_timers(LinkTime now) {
  // A thread that was suspended itself (a sleeping laptop, SIGSTOP) first reads what arrived
  // meanwhile.
  const bool on_time = now - next_tick_ < options.silence / 2;
  next_tick_ = now + options.silence / 5;
  for (const auto& [peer, link] : links_) {
    bool silent = false;
    {
      const std::lock_guard lock(links_mutex_);
      silent = on_time && link.silent_since(now - options.silence);
    }
    if (silent)
      lose(peer, cat("it sent no message or heartbeat for ",
                     to_text(std::chrono::duration<double>(options.silence).count()), " s"));
    if (state_of(peer) == Link::State::joined && !send_heartbeat(peer))
      lose(peer, "its connection ended");
  }
  tick(now);
}

Link::State PeerTransport::state_of(const std::string& peer) {
  const std::lock_guard lock(links_mutex_);
  return links_.at(peer).state();
}

std::uint64_t PeerTransport::session_of(const std::string& peer) {
  const std::lock_guard lock(links_mutex_);
  return links_.at(peer).session();
}

void PeerTransport::join(const std::string& peer, const Control& hello) {
  std::uint64_t incarnation = 1;
  {
    const std::lock_guard lock(links_mutex_);
    incarnation = links_.at(peer).incarnation();
    links_.at(peer).join(hello.session, {hello.frames, hello.bytes},
                         std::chrono::steady_clock::now());
  }
  if (options.on_peer) options.on_peer({peer, PeerEvent::What::joined, "", incarnation});
}

void PeerTransport::lose(const std::string& peer, const std::string& why) {
  std::uint64_t incarnation = 1;
  {
    const std::lock_guard lock(links_mutex_);
    if (links_.at(peer).state() == Link::State::lost) return;
    incarnation = links_.at(peer).incarnation();
  }
  // First, so that the senders that get errors can know why.
  if (options.on_peer && !closing_)
    options.on_peer({peer, PeerEvent::What::lost, why, incarnation});
  std::vector<Frame> errors;
  {
    const std::lock_guard lock(links_mutex_);
    errors = links_.at(peer).lose(why);
  }
  for (auto& error : errors) deliver(std::move(error));
}

void PeerTransport::renew(const std::string& peer) {
  const std::lock_guard lock(links_mutex_);
  links_.at(peer).renew();
}

void PeerTransport::take_late(const std::string& peer, Frame frame) {
  {
    const std::lock_guard lock(links_mutex_);
    if (links_.at(peer).keeps()) return;  // its successor was asked the same under this number
  }
  if (frame.kind == Kind::reply && frame.from.node == peer && frame.to.node == name)
    deliver(std::move(frame));
}

std::optional<std::variant<Frame, Control>> PeerTransport::decode(const std::string& peer,
                                                                  Incoming& in) {
  if (in.oversized) {
    refusals.add(Refusal::oversized, peer,
                 cat("expected at most ", options.max_bytes, " bytes, ", options.max_header_bytes,
                     " of them in the header, found ", in.bytes, " or more"));
    return std::nullopt;
  }
  auto message = wire::decode_message(std::move(in.message), peer);
  if (message) return std::move(*message);
  refusals.add(Refusal::malformed, peer, message.error().what);
  return std::nullopt;
}

void PeerTransport::heard(const std::string& peer) {
  const std::lock_guard lock(links_mutex_);
  links_.at(peer).heard(std::chrono::steady_clock::now());
}

void PeerTransport::take(const std::string& peer, Incoming in,
                         std::variant<Frame, Control> message) {
  heard(peer);
  if (auto* frame = std::get_if<Frame>(&message))
    take_frame(peer, std::move(*frame), in.bytes);
  else
    take_control(peer, std::get<Control>(message));
}

void PeerTransport::take_frame(const std::string& peer, Frame frame, std::size_t bytes) {
  bool grant_due = false;
  {
    const std::lock_guard lock(links_mutex_);
    Link& link = links_.at(peer);
    if (frame.kind != Kind::request) link.answered(frame.id);
    grant_due = link.received(bytes);
  }
  if (frame.from.node != peer) {
    refusals.add(Refusal::impersonation, peer,
                 cat("expected frames from itself, found one from ", quote(frame.from.node)));
  } else if (frame.to.node != name) {
    refusals.add(Refusal::misdirected, peer,
                 cat("expected frames to '", name, "', found one to ", quote(frame.to.node)));
  } else {
    deliver(std::move(frame));
  }
  if (grant_due) grant(peer);
}

void PeerTransport::grant(const std::string& peer) {
  Window totals;
  {
    const std::lock_guard lock(links_mutex_);
    totals = links_.at(peer).received_totals();
  }
  if (!transmit(peer, wire::encode_control(
                          {Control::Kind::grant, session_, totals.frames, totals.bytes})))
    lose(peer, "its connection ended");
}

void PeerTransport::take_control(const std::string& peer, const Control& control) {
  if (control.kind == Control::Kind::bye) {
    if (!sent_bye_) send_bye(peer);
    return lose(peer, "it closed the connection");
  }
  if (control.kind == Control::Kind::heartbeat) return;
  if (control.kind == Control::Kind::fenced) return fenced(peer);
  bool good = control.kind == Control::Kind::grant;
  if (good) {
    const std::lock_guard lock(links_mutex_);
    good = links_.at(peer).consumed({control.frames, control.bytes});
  }
  if (!good)
    refusals.add(Refusal::malformed, peer,
                 "expected credit for sent messages, found a second hello or too much credit");
}

void PeerTransport::fenced(const std::string& peer) {
  if (options.on_peer)
    options.on_peer({peer, PeerEvent::What::fenced,
                     "it had taken this process for lost, and another has its place"});
  lose(peer, "it refuses this process, which it had taken for lost");
}

bool PeerTransport::send_all(const std::string& peer, std::vector<wire::WireBody> ready) {
  std::vector<wire::WireBody> small;
  std::size_t bytes = 0;
  const auto send_small = [&] {
    const bool sent = small.empty() ||
                      transmit(peer, small.size() == 1 ? std::move(small[0]) : wire::bundle(small));
    small.clear();
    bytes = 0;
    return sent;
  };
  for (auto& message : ready) {
    if (wire::may_bundle(message)) {
      bytes += message.header.size() + 4;
      small.push_back(std::move(message));
      if (bytes >= wire::max_bundle_bytes && !send_small()) return false;
    } else if (!send_small() || !transmit(peer, std::move(message))) {
      return false;
    }
  }
  return send_small();
}

void PeerTransport::split(const std::string& peer, Incoming in,
                          const std::function<void(Incoming)>& each) {
  if (!wire::is_bundle(in.message)) return each(std::move(in));
  auto messages = wire::unbundle(in.message, peer);
  if (!messages) return refusals.add(Refusal::malformed, peer, messages.error().what);
  for (auto& message : *messages) {
    const std::size_t bytes = message.header.size();
    each({in.route, in.node, in.fd, bytes, false, std::move(message)});
  }
}

}  // namespace troupe::transports
