// ServerLimits: what a client may use of an HTTP server.
#pragma once

#include <chrono>
#include <cstddef>

namespace troupe::launch::serve::http {

/// Deadlines are checked every quarter of a second.
struct ServerLimits {
  /// Open at once. Beyond it the connection that has waited longest without a request gives way
  /// (IdleConnections); if all of them have one, the new connection gets status 503.
  std::size_t connections = 2048;
  /// Of one IPv4 address or one IPv6 network of 64 bits; beyond it: status 503 and closed. Not for
  /// loopback, Unix-domain sockets and proxies, where one address stands for all clients.
  std::size_t connections_per_address = 512;
  std::size_t header_bytes = 16 << 10;
  std::size_t header_fields = 64;
  std::size_t body_bytes = 2 << 20;
  /// Of all bodies that arrive, wait and are read; beyond it bodies of more than small_body_bytes
  /// get status 503.
  std::size_t all_body_bytes = 64 << 20;
  std::size_t small_body_bytes = 64 << 10;
  std::size_t stream_bytes = 1 << 20;  ///< events that wait for a slow reader
  /// Of all answers that are not read yet; beyond it an answer of more than small_answer_bytes is
  /// status 503, and a stream of which so much waits is cut off.
  std::size_t all_answer_bytes = 192 << 20;
  std::size_t small_answer_bytes = 64 << 10;
  std::chrono::milliseconds header_time{5'000};  ///< from the first byte; TLS handshake likewise
  std::chrono::milliseconds body_time{30'000};   ///< from the end of the header
  std::chrono::milliseconds first_byte_time{5'000};  ///< from the start of a connection
  std::chrono::milliseconds idle_time{60'000};       ///< between requests
  std::chrono::milliseconds write_time{30'000};      ///< for what was handed to the system at once
};

}  // namespace troupe::launch::serve::http
