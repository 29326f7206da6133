// Exchange: the answer to one request on its way from a handler, on any thread, to the connection.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "launch/serve/http/held_bytes.h"
#include "launch/serve/http/response.h"
#include "launch/serve/http/router.h"

namespace troupe::launch::serve::http {

class Exchange {
 public:
  struct Terms {
    std::string request_id;
    bool http11 = true;
    bool keep_alive = true;
    bool head_only = false;        ///< the request's method is HEAD
    std::size_t stream_bytes = 0;  ///< events that may wait
    // ServerLimits::all_answer_bytes and small_answer_bytes, and what all exchanges hold now.
    std::size_t all_bytes = ~std::size_t{0}, small_bytes = 0;
    std::shared_ptr<std::atomic<std::size_t>> held = std::make_shared<std::atomic<std::size_t>>(0);
    /// Writes errors for the clients of the route; nullptr: as they are.
    std::shared_ptr<const ClientForm> form = nullptr;
    /// Whether the server is draining, so that connections are closed after their answers.
    std::shared_ptr<const std::atomic<bool>> draining;
  };
  /// `wake` is called from any thread when take() has something new, or overflowed() is true.
  Exchange(Terms terms, std::function<void()> wake)
      : terms_(std::move(terms)), wake_(std::move(wake)), held_(terms_.held) {}

  // For Responder, whose comments describe them.
  void respond(Response response);
  void begin_stream();
  bool send_event(std::string_view data);
  bool send_events(const std::vector<Event>& events);
  void end_stream();
  void on_disconnect(std::function<void()> call);
  bool disconnected();
  /// No responder is left: completes the answer with status 500, or cuts the stream.
  void abandon();

  // For the connection.
  struct Output {
    std::string bytes;
    bool last = false;        ///< the answer ends with these bytes
    bool keep_alive = false;  ///< valid if last: whether another request may follow
  };
  /// The bytes that wait to be written.
  Output take();
  /// True if the reader is too slow: the connection must be closed, whatever is being written.
  bool overflowed();
  /// The bytes of the last take() have been written.
  void written();
  /// The client has disconnected: calls what on_disconnect() received, unless the answer is
  /// complete. Nothing is sent afterwards.
  void disconnect();

  int status();              ///< of the response; 0 before it begins
  std::size_t body_bytes();  ///< passed by the handler so far

 private:
  enum class State { open, streaming, ended };
  std::string head_of(const Response& response, bool stream) const;
  /// Whether all answers may hold this one with `bytes` of it waiting, which are counted.
  bool may_hold(std::size_t bytes) {
    return held_.grow_to(bytes) <= terms_.all_bytes || bytes <= terms_.small_bytes;
  }
  bool send(const std::vector<Event>& events, std::size_t bytes);
  bool keep_alive() const { return terms_.keep_alive && !*terms_.draining; }
  void append_chunk(std::string_view bytes);
  Response for_client(Response response) const;
  /// Calls wake_ after unlocking, unless the connection is awake already.
  void notify(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  Terms terms_;
  const std::function<void()> wake_;
  State state_ = State::open;
  std::string queued_;
  std::size_t in_flight_ = 0;
  std::size_t largest_list_ = 0;  // bytes of events that were sent together
  HeldBytes held_;
  bool woken_ = false, disconnected_ = false, overflow_ = false;
  int status_ = 0;
  std::size_t body_bytes_ = 0;
  std::function<void()> on_disconnect_;
};

}  // namespace troupe::launch::serve::http
