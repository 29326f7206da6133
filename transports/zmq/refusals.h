// Refusals: what came in and was not taken, counted by kind, logged once for each kind and peer.
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
  failed_handshake,   ///< a connection that did not speak CURVE, or not in time
  second_connection,  ///< a known key that is in use already, or whose first connection was lost
  impersonation,      ///< a frame in the name of another node
  misdirected,        ///< a frame to a node that its sender may not talk to, or before its hello
  oversized,          ///< more bytes or parts than a message may have
  malformed           ///< bytes that are no message
};
constexpr std::array<std::string_view, 7> names_of(Refusal) {
  return {"unknown_key", "failed_handshake", "second_connection", "impersonation",
          "misdirected", "oversized",        "malformed"};
}

class Refusals {
 public:
  /// From any thread. `sentence` is logged the first time for this kind and peer.
  void add(Refusal kind, const std::string& peer, std::string_view sentence);
  std::uint64_t count(Refusal kind) const { return counts_[static_cast<std::size_t>(kind)]; }
  std::uint64_t total() const;

 private:
  std::array<std::atomic<std::uint64_t>, 7> counts_{};
  std::mutex mutex_;
  std::set<std::pair<Refusal, std::string>> logged_;
};

}  // namespace troupe::transports
