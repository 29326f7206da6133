#include "launch/serve/http/connection.h"

#include <utility>

#include "engine/base/text/text.h"

namespace troupe::launch::serve::http {

using std::chrono::milliseconds;

namespace {

/// How long a closed connection's input is still read, so that the client receives the response
/// before a reset.
constexpr milliseconds linger_time{2'000};
/// Input that is read ahead while a request is handled; beyond it reading pauses.
constexpr std::size_t max_ahead = 64 << 10;
constexpr std::string_view continue_line = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

Connection::Connection(std::shared_ptr<Service> service, std::shared_ptr<EventLoop> loop,
                       std::unique_ptr<Stream> stream, std::string client,
                       std::function<void(Connection&)> closed)
    : service_(std::move(service)),
      loop_(std::move(loop)),
      stream_(std::move(stream)),
      client_(std::move(client)),
      closed_(std::move(closed)),
      parser_(service_->limits) {
}

void Connection::enter(Phase phase, milliseconds limit) {
  phase_ = phase;
  deadline_ = limit.count() == 0 ? Clock::time_point::max() : Clock::now() + limit;
}

void Connection::may_give_way() {
  ticket_ = service_->idle.add(on_loop(&Connection::give_way));
}

bool Connection::stays() {
  if (!ticket_ || service_->idle.remove(*std::exchange(ticket_, std::nullopt))) return true;
  give_way();
  return false;
}

std::function<void()> Connection::on_loop(void (Connection::*call)()) {
  // The connection may end on its own thread only, so it is not held here.
  return [weak = weak_from_this(), loop = std::weak_ptr<EventLoop>(loop_), call] {
    if (const auto running = loop.lock())
      running->post([weak, call] {
        if (const auto self = weak.lock()) ((*self).*call)();
      });
  };
}

void Connection::give_way() {
  if (phase_ == Phase::closed) return;
  ++service_->gave_way;
  close();
}

void Connection::start() {
  may_give_way();
  enter(Phase::handshake, service_->limits.header_time);
  stream_->handshake([self = shared_from_this()](bool ok, std::size_t) {
    if (self->phase_ == Phase::closed) return;
    if (!ok) return self->close();
    self->enter(Phase::idle, self->service_->limits.first_byte_time);
    self->read();
  });
}

void Connection::start_refused() {
  refused_ = true;
  enter(Phase::handshake, linger_time);
  stream_->handshake([self = shared_from_this()](bool ok, std::size_t) {
    if (self->phase_ == Phase::closed) return;
    if (!ok) return self->close();
    self->received_ = Clock::now();
    Response response = error_response(503, {.message = "too many connections"});
    response.headers = {{"Retry-After", "1"}};
    self->refuse(std::move(response));
  });
}

void Connection::read() {
  if (reading_ || phase_ == Phase::closed || input_.size() > max_ahead) return;
  reading_ = true;
  stream_->read_some(chunk_.data(), chunk_.size(),
                     [self = shared_from_this()](bool ok, std::size_t bytes) {
                       self->reading_ = false;
                       self->on_read(ok, bytes);
                     });
}

void Connection::on_read(bool ok, std::size_t bytes) {
  if (phase_ == Phase::closed) return;
  if (!ok) return close();
  if (phase_ != Phase::lingering) input_.append(chunk_.data(), bytes);
  if (phase_ != Phase::answer && phase_ != Phase::lingering) parse();
  read();
}

void Connection::parse() {
  while (!input_.empty() && phase_ != Phase::answer) {
    if (phase_ == Phase::idle) {
      received_ = Clock::now();
      parser_ = RequestParser(service_->limits);
      route_ = nullptr;
      enter(Phase::header, service_->limits.header_time);
    }
    std::size_t consumed = 0;
    const RequestParser::State state = parser_.feed(input_, consumed);
    input_.erase(0, consumed);
    if (!body_fits() || !on_progress(state)) return;
  }
}

bool Connection::on_progress(RequestParser::State state) {
  switch (state) {
    case RequestParser::State::more:
      // Only a line of the chunked encoding can be that long; Beast bounds the header itself.
      if (input_.size() <= service_->limits.header_bytes) return false;
      refuse(error_response(431, {"a line of the request is too long"}));
      return false;
    case RequestParser::State::header:
      return begin_body();
    case RequestParser::State::complete:
      admit();
      return false;
    case RequestParser::State::failed:
      ++service_->malformed;
      refuse(error_response(parser_.status(), {parser_.message()}));
      return false;
  }
  return false;
}

bool Connection::body_fits() {
  const std::size_t bytes = parser_.request().body.size();
  if (bytes == 0) return true;
  if (held_ == nullptr) held_ = std::make_shared<HeldBytes>(service_->body_bytes);
  const ServerLimits& limits = service_->limits;
  if (held_->grow_to(bytes) <= limits.all_body_bytes || bytes <= limits.small_body_bytes)
    return true;
  Response response = error_response(
      503, {"the server holds as many bytes of requests as it may; try again later"});
  response.headers = {{"Retry-After", "1"}};
  refuse(std::move(response));
  return false;
}

bool Connection::begin_body() {
  Request& request = parser_.request();
  request.id = request_id_of(request);
  Service::Admission admission = service_->admit(request);
  if (admission.route == nullptr) {
    refuse(std::move(admission.refusal));
    return false;
  }
  route_ = admission.route;
  enter(Phase::body, service_->limits.body_time);
  if (!parser_.expects_continue() || !input_.empty() || writing_) return true;
  writing_ = true;
  write_deadline_ = Clock::now() + service_->limits.write_time;
  stream_->write(continue_line, [self = shared_from_this()](bool ok, std::size_t) {
    self->writing_ = false;
    self->write_deadline_ = Clock::time_point::max();
    if (!ok) return self->close();
    if (self->exchange_ != nullptr) self->pump();
  });
  return true;
}

void Connection::admit() {
  if (!stays()) return;
  Request& request = parser_.request();
  if (request.id.empty()) request.id = request_id_of(request);
  Service::Admission admission{route_, {}};
  if (route_ == nullptr) admission = service_->admit(request);  // there is no body
  open_exchange(request.keep_alive);
  if (admission.route == nullptr)
    exchange_->respond(std::move(admission.refusal));
  else
    run_handler(*admission.route);
}

void Connection::refuse(Response response) {
  if (!stays()) return;
  Request& request = parser_.request();
  if (request.id.empty()) request.id = request_id_of(request);
  open_exchange(false);
  exchange_->respond(std::move(response));
}

void Connection::open_exchange(bool keep_alive) {
  enter(Phase::answer, milliseconds(0));
  ++service_->active;
  const Request& request = parser_.request();
  record_ = {.request_id = request.id,
             .client = client_,
             .key = request.key,
             .method = request.method,
             .path = request.path,
             .request_bytes = request.body.size()};
  const Exchange::Terms terms{.request_id = request.id,
                              .http11 = parser_.http11(),
                              .keep_alive = keep_alive,
                              .head_only = request.method == "HEAD",
                              .stream_bytes = service_->limits.stream_bytes,
                              .all_bytes = service_->limits.all_answer_bytes,
                              .small_bytes = service_->limits.small_answer_bytes,
                              .held = service_->answer_bytes,
                              .form = service_->router.form(request.path),
                              .draining = {service_, &service_->draining}};
  exchange_ = std::make_shared<Exchange>(terms, on_loop(&Connection::pump));
}

void Connection::run_handler(const Route& route) {
  Request request = std::move(parser_.request());
  request.client = client_;
  request.received = received_;
  request.held = std::move(held_);
  route.handler(std::move(request), Responder(exchange_));
}

void Connection::pump() {
  if (exchange_ == nullptr || phase_ != Phase::answer) return;
  if (exchange_->overflowed()) {
    ++service_->slow;
    return close();
  }
  if (writing_) return;
  Exchange::Output output = exchange_->take();
  if (output.bytes.empty() && !output.last) return;
  if (output.bytes.empty()) return finish(output.keep_alive);
  writing_ = true;
  write_deadline_ = Clock::now() + service_->limits.write_time;
  output_ = std::move(output.bytes);
  output.bytes.clear();
  stream_->write(output_, [self = shared_from_this(), output](bool ok, std::size_t) {
    self->on_written(ok, output);
  });
}

void Connection::on_written(bool ok, const Exchange::Output& what) {
  writing_ = false;
  write_deadline_ = Clock::time_point::max();
  std::exchange(output_, {});  // which the total of answers does not count any more
  if (phase_ == Phase::closed) return;
  if (!ok) return close();
  exchange_->written();
  if (what.last)
    finish(what.keep_alive);
  else
    pump();
}

void Connection::finish(bool keep_alive) {
  record(exchange_->status());
  exchange_.reset();
  std::exchange(parser_.request().body, {});  // of a request that was refused, and its memory
  held_.reset();
  if (!keep_alive || service_->draining) return linger();
  may_give_way();
  enter(Phase::idle, service_->limits.idle_time);
  parse();
  read();
}

void Connection::linger() {
  if (!refused_) may_give_way();  // it has its answer
  enter(Phase::lingering, linger_time);
  input_.clear();
  stream_->shut_down([self = shared_from_this()](bool ok, std::size_t) {
    if (!ok) self->close();
  });
  read();
}

void Connection::record(int status) {
  --service_->active;
  ++service_->requests;
  if (service_->log == nullptr) return;
  record_.status = status;
  record_.response_bytes = exchange_->body_bytes();
  record_.seconds = std::chrono::duration<double>(Clock::now() - received_).count();
  service_->log->write(record_);
}

void Connection::check_deadline(Clock::time_point now) {
  if (now < deadline_ && now < write_deadline_) return;
  if (phase_ == Phase::closed) return;
  if (phase_ == Phase::header || phase_ == Phase::body) {
    ++service_->timeouts;
    if (!writing_) {
      return refuse(error_response(
          408, {phase_ == Phase::header ? "the header took too long" : "the body took too long"}));
    }
  } else if (phase_ == Phase::answer || phase_ == Phase::handshake) {
    ++service_->timeouts;
  }
  close();
}

void Connection::drain() {
  if (phase_ == Phase::idle || phase_ == Phase::handshake) close();
}

void Connection::close() {
  if (phase_ == Phase::closed) return;
  const auto self = shared_from_this();  // closed_() drops the owner's reference
  phase_ = Phase::closed;
  if (ticket_) service_->idle.remove(*std::exchange(ticket_, std::nullopt));
  stream_->close();
  if (exchange_ != nullptr) {
    record(499);
    const std::shared_ptr<Exchange> cut = std::move(exchange_);
    cut->disconnect();
  }
  closed_(*this);
}

}  // namespace troupe::launch::serve::http
