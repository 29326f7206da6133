// Refusals: rejected connections and messages, counted by kind and logged once per kind and peer.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace troupe::transports {

enum class Refusal {
  unknown_key,        ///< a handshake with a key that is not on the list
  failed_handshake,   ///< a connection without a CURVE handshake in time
  second_connection,  ///< a known key that is already in use, or whose first connection was lost
  impersonation,      ///< a frame with another node as its sender
  misdirected,        ///< a frame to a node that its sender may not address, or before its hello
  oversized,          ///< more bytes or parts than the limits
  malformed,          ///< bytes that are not a message
  fenced              ///< messages of a process that was taken for lost; counted once for each
};
constexpr std::array<std::string_view, 8> names_of(Refusal) {
  return {"unknown_key", "failed_handshake", "second_connection", "impersonation",
          "misdirected", "oversized",        "malformed",         "fenced"};
}

class Refusals {
 public:
  /// Callable from any thread. Logs `sentence` the first time for this kind and peer.
  void add(Refusal kind, const std::string& peer, std::string_view sentence);
  std::uint64_t count(Refusal kind) const { return counts_[static_cast<std::size_t>(kind)]; }
  std::uint64_t total() const;

 private:
  std::array<std::atomic<std::uint64_t>, 8> counts_{};
  std::mutex mutex_;
  std::set<std::pair<Refusal, std::string>> logged_;
};

}  // namespace troupe::transports
