// Leases: who may deliver which sample, and until when. The experience service leases samples to
// clients for a time, a run to the processes of its rollouts until they are lost.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/random/secret.h"

namespace troupe::actors::roles {

/// The last lease of a sample.
struct Lease {
  std::string holder;  ///< an API key, or an incarnation of a rollout ("rollout-0#2")
  std::string token;   ///< that the holder shows
  std::chrono::steady_clock::time_point until = {};
};

/// Not synchronized.
class Leases {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// A lease without an end.
  static constexpr Time forever = Time::max();

  /// Replaces the lease that the sample had.
  void grant(std::uint64_t sample_id, Lease lease) { leases_[sample_id] = std::move(lease); }
  /// The sample has arrived, or is not wanted any more.
  void end(std::uint64_t sample_id) { leases_.erase(sample_id); }
  /// Ends the leases of a holder that was lost; returns the samples, in the order of their ids.
  std::vector<std::uint64_t> revoke(const std::string& holder);

  /// The last lease, which may have ended; nullptr: there was none.
  const Lease* find(std::uint64_t sample_id) const;
  bool held(std::uint64_t sample_id, Time now) const;
  /// Whether `holder` has the sample now, by the lease with this token. The time that it takes does
  /// not depend on the token.
  bool held_by(std::uint64_t sample_id, const std::string& holder, const std::string& token,
               Time now) const;
  /// Samples that `holder` has.
  std::size_t count(const std::string& holder, Time now) const;

 private:
  std::map<std::uint64_t, Lease> leases_;
};

}  // namespace troupe::actors::roles
