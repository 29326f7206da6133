// Stream: the bytes of one connection, in the clear or through TLS. Everything but post() is called
// on the thread of the connection's loop, where the callbacks are called, never from within a call.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "launch/serve/http/event_loop.h"
#include "launch/serve/http/tls.h"

namespace troupe::launch::serve::http {

class Stream {
 public:
  /// False after the end of the stream, an error, or close().
  using Done = std::function<void(bool ok, std::size_t bytes)>;

  virtual ~Stream() = default;
  /// The TLS handshake; without TLS it succeeds at once.
  virtual void handshake(Done done) = 0;
  /// Reads at least one byte and at most `size`. One read and one write may be in progress.
  virtual void read_some(char* to, std::size_t size, Done done) = 0;
  /// Writes all bytes, which stay valid until `done`.
  virtual void write(std::string_view bytes, Done done) = 0;
  /// Notifies the peer that nothing more is written (FIN, close_notify). `done` receives true if
  /// what the peer still sends should be read, false if the stream can be closed.
  virtual void shut_down(Done done) = 0;
  /// Ends everything in progress. Idempotent.
  virtual void close() = 0;
};

/// A stream over a connected socket, which it owns from now on; `tls` may be nullptr.
std::unique_ptr<Stream> make_stream(std::shared_ptr<EventLoop> loop, int socket,
                                    std::shared_ptr<TlsContext> tls);

}  // namespace troupe::launch::serve::http
