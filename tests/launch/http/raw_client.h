// RawClient: sends any bytes to a server and reads its responses, with a deadline for every wait.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/files/descriptor.h"

namespace troupe::launch::serve::http {

struct RawResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;                            ///< without chunks
};

class RawClient {
 public:
  /// Connects to 127.0.0.1:port.
  explicit RawClient(int port, int receive_buffer = 0);

  /// False if the server has closed the connection.
  bool send(std::string_view bytes);
  void half_close();
  /// Closes with a reset.
  void reset();
  /// The next response, or nothing at the end of the stream or after the deadline.
  std::optional<RawResponse> response(
      std::chrono::milliseconds deadline = std::chrono::milliseconds(5000), bool head = false);
  /// Everything up to the end of the stream; nothing if it does not end by the deadline.
  std::optional<std::string> rest(std::chrono::milliseconds deadline);
  /// Whether `text` arrives; what follows it is kept.
  bool read_until(std::string_view text, std::chrono::milliseconds deadline);
  int descriptor() const { return socket_.get(); }

 private:
  /// Reads more: false at the end or after the deadline.
  bool fill(std::chrono::steady_clock::time_point deadline);
  Descriptor socket_;
  std::string input_;
  bool ended_ = false;
};

/// A request with a body: "POST PATH", Host, Content-Length and `fields` ("Name: value\r\n").
std::string post(std::string_view path, std::string_view body, std::string_view fields = "");
std::string get(std::string_view path, std::string_view fields = "");

}  // namespace troupe::launch::serve::http
