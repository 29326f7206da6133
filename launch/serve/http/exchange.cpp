#include "launch/serve/http/exchange.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::launch::serve::http {

namespace {

/// "Sun, 06 Nov 1994 08:49:37 GMT", computed once per second and thread.
const std::string& http_date() {
  thread_local std::time_t second = 0;
  thread_local std::string text;
  const std::time_t now = std::time(nullptr);
  if (now != second) {
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    std::array<char, 40> date{};
    std::strftime(date.data(), date.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    text = date.data();
    second = now;
  }
  return text;
}

bool one_line(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

}  // namespace

std::string Exchange::head_of(const Response& response, bool stream) const {
  std::string head;
  head.reserve(320);
  head.append("HTTP/1.1 ").append(std::to_string(response.status)).append(" ");
  head.append(reason_of(response.status)).append("\r\nDate: ").append(http_date());
  head.append("\r\nX-Request-Id: ").append(terms_.request_id);
  if (response.status != 204) head.append("\r\nContent-Type: ").append(response.content_type);
  if (stream && terms_.http11)
    head.append("\r\nTransfer-Encoding: chunked");
  else if (!stream && response.status != 204)
    head.append("\r\nContent-Length: ").append(std::to_string(response.body.size()));
  for (const HeaderField& field : response.headers) {
    check(one_line(field.name) && one_line(field.value), "a header field contains a line break");
    head.append("\r\n").append(field.name).append(": ").append(field.value);
  }
  head.append(keep_alive() ? "\r\nConnection: keep-alive" : "\r\nConnection: close");
  return head.append("\r\n\r\n");
}

void Exchange::notify(std::unique_lock<std::mutex>& lock) {
  const bool call = !woken_;
  woken_ = true;
  lock.unlock();
  if (call) wake_();
}

Response Exchange::for_client(Response response) const {
  if (response.status < 400 || terms_.form == nullptr) return response;
  return terms_.form->error(std::move(response));
}

void Exchange::respond(Response response) {
  std::unique_lock lock(mutex_);
  if (state_ != State::open || disconnected_) return;
  response = for_client(std::move(response));
  if (!may_hold(response.body.size())) {
    response = error_response(
        503, {"the server holds as many bytes of answers that nobody reads as it may; try again"});
    response.headers = {{"Retry-After", "1"}};
    response = for_client(std::move(response));
    held_.grow_to(response.body.size());
  }
  state_ = State::ended;
  status_ = response.status;
  body_bytes_ = response.body.size();
  std::string head = head_of(response, false);
  if (!terms_.head_only && response.status != 204) {
    // Not the twofold capacity of a string that grows: a client may read slowly.
    head.reserve(head.size() + response.body.size());
    head += response.body;
  }
  queued_ = std::move(head);
  notify(lock);
}

void Exchange::begin_stream() {
  std::unique_lock lock(mutex_);
  if (state_ != State::open || disconnected_) return;
  state_ = State::streaming;
  status_ = 200;
  // Without chunks only the end of the connection can end the stream.
  if (!terms_.http11) terms_.keep_alive = false;
  queued_ = head_of({.content_type = "text/event-stream; charset=utf-8",
                     .headers = {{"Cache-Control", "no-cache"}}},
                    true);
  notify(lock);
}

void Exchange::append_chunk(std::string_view bytes) {
  if (terms_.head_only) return;
  if (!terms_.http11) {
    queued_ += bytes;
    return;
  }
  std::array<char, 24> size{};
  std::snprintf(size.data(), size.size(), "%zx\r\n", bytes.size());
  queued_.append(size.data()).append(bytes).append("\r\n");
}

bool Exchange::send_event(std::string_view data) {
  return send({{"", std::string(data)}}, 0);
}

bool Exchange::send_events(const std::vector<Event>& events) {
  std::size_t bytes = 0;
  for (const Event& each : events) bytes += each.data.size();
  return send(events, bytes);
}
bool Exchange::send(const std::vector<Event>& events, std::size_t list_bytes) {
  std::string text;
  std::size_t bytes = 0;
  for (const Event& each : events) {
    check(one_line(each.name) && one_line(each.data), "an event must have one line of data");
    if (!each.name.empty()) text += cat("event: ", each.name, "\n");
    text += cat("data: ", each.data, "\n\n");
    bytes += each.data.size();
  }
  std::unique_lock lock(mutex_);
  if (state_ != State::streaming || disconnected_ || overflow_) return false;
  largest_list_ = std::max(largest_list_, list_bytes);
  const std::size_t waiting = queued_.size() + in_flight_ + bytes;
  if (waiting > terms_.stream_bytes + largest_list_ || !may_hold(waiting)) {
    overflow_ = true;
    woken_ = false;  // the connection may be awake only for the end of a write that never ends
    notify(lock);
    return false;
  }
  if (!text.empty()) append_chunk(text);
  body_bytes_ += text.size();
  notify(lock);
  return true;
}

void Exchange::end_stream() {
  std::unique_lock lock(mutex_);
  if (state_ != State::streaming || disconnected_) return;
  state_ = State::ended;
  if (terms_.http11 && !terms_.head_only) queued_ += "0\r\n\r\n";
  notify(lock);
}

void Exchange::on_disconnect(std::function<void()> call) {
  {
    const std::unique_lock lock(mutex_);
    if (!disconnected_) {
      if (state_ != State::ended) on_disconnect_ = std::move(call);
      return;
    }
  }
  call();
}

bool Exchange::disconnected() {
  const std::unique_lock lock(mutex_);
  return disconnected_;
}

void Exchange::abandon() {
  std::unique_lock lock(mutex_);
  if (state_ == State::ended || disconnected_) return;
  if (state_ == State::open) {
    lock.unlock();
    return respond(error_response(500, {"the request was not answered"}));
  }
  state_ = State::ended;
  terms_.keep_alive = false;
  notify(lock);
}

Exchange::Output Exchange::take() {
  const std::unique_lock lock(mutex_);
  woken_ = false;
  in_flight_ = queued_.size();
  return {std::exchange(queued_, {}), state_ == State::ended, keep_alive()};
}

bool Exchange::overflowed() {
  const std::unique_lock lock(mutex_);
  return overflow_;
}

void Exchange::written() {
  const std::unique_lock lock(mutex_);
  in_flight_ = 0;
  held_.grow_to(queued_.size());
}

void Exchange::disconnect() {
  std::function<void()> call;
  {
    const std::unique_lock lock(mutex_);
    if (std::exchange(disconnected_, true)) return;
    if (state_ != State::ended) call = std::move(on_disconnect_);
    on_disconnect_ = nullptr;
    std::exchange(queued_, {});  // with its memory, which an assignment keeps
    held_.grow_to(0);
  }
  if (call) call();
}

int Exchange::status() {
  const std::unique_lock lock(mutex_);
  return status_;
}

std::size_t Exchange::body_bytes() {
  const std::unique_lock lock(mutex_);
  return body_bytes_;
}

}  // namespace troupe::launch::serve::http
