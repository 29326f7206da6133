// Response and Responder: how handlers answer a request, from any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/serve/http/request.h"

namespace troupe::launch::serve::http {

/// A whole response. The server adds Content-Length, Date, Connection and X-Request-Id.
struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<HeaderField> headers = {};  ///< additional fields, such as {"retry-after", "1"}
};

/// An error in the form that OpenAI's clients expect:
/// {"error":{"message":...,"type":TYPE,"param":PARAM or null,"code":CODE or null}}.
struct ErrorBody {
  std::string message;
  std::string
      type;  ///< "" for the type of the status: "invalid_request_error" below 500 and for 505
  std::string param;  ///< "" for null
  std::string code;   ///< "" for null
};
Response error_response(int status, const ErrorBody& error);

/// "Not Found" for 404; "" for an unknown status.
std::string_view reason_of(int status);

/// A server-sent event. `name`: of its line "event: NAME"; "": it has none.
struct Event {
  std::string name, data;
};

class Exchange;

/// Answers one request: either respond(), or begin_stream(), send_event() any number of times and
/// end_stream(). All functions may be called from any thread and return at once. Copies answer the
/// same request. If all copies are destroyed before the answer is complete, the client receives
/// status 500, or a stream that ends without its last chunk.
class Responder {
 public:
  explicit Responder(std::shared_ptr<Exchange> exchange);

  /// Sends a whole response. Ignored if an answer has begun.
  void respond(Response response) const;

  /// Begins a stream of server-sent events (status 200, text/event-stream). Ignored if an answer
  /// has begun.
  void begin_stream() const;
  /// Sends "data: DATA" and an empty line; DATA must not contain line breaks. Returns false if the
  /// event will not arrive: the client has disconnected, or it reads so slowly that more than
  /// ServerLimits::stream_bytes wait for it, which ends the connection.
  bool send_event(std::string_view data) const;
  /// The same for events that belong together: the limit grows by the bytes of the largest such
  /// list, as events at the end of a part repeat it.
  bool send_events(const std::vector<Event>& events) const;
  /// Ends the stream.
  void end_stream() const;

  /// `call` is called once, on a thread of the server, if the client disconnects before the answer
  /// is complete; at once on this thread if it has disconnected. It replaces the previous `call`
  /// and must not wait.
  void on_disconnect(std::function<void()> call) const;
  bool disconnected() const;

 private:
  struct Guard;
  std::shared_ptr<Guard> guard_;
};

}  // namespace troupe::launch::serve::http
