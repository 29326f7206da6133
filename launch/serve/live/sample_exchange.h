// SampleExchange: samples that a rollout offers, programs lease and make, and the rollout takes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "actors/protocol/generate.h"
#include "engine/base/json.h"

namespace troupe::launch::live {

/// The samples of one prompt that a program has leased.
struct LeasedGroup {
  std::uint64_t group = 0;
  std::vector<std::uint64_t> sample_ids;
  std::vector<std::int32_t> prompt;
  Json answer;
};

/// What became of a sample that arrived.
enum class Arrival {
  accepted,
  duplicate,    ///< a sample of this id was accepted before
  not_offered,  ///< no such sample is wanted, or not any more
  too_old,      ///< a token has a version before Offer::oldest
};

/// A sample that is offered.
struct Offer {
  actors::protocol::SampleRequest request;
  std::uint64_t oldest = 0;  ///< version that may have sampled its tokens
  std::chrono::steady_clock::time_point leased_until = {};
};

/// Every function may be called from any thread.
class SampleExchange {
 public:
  /// `group`: consecutive sample ids of a prompt.
  SampleExchange(std::int64_t group, std::chrono::seconds lease_time)
      : group_(static_cast<std::uint64_t>(group)), lease_time_(lease_time) {}

  /// These samples are wanted and no others: a lease of another sample ends. A new one must have
  /// tokens of `version` and later ones only.
  void offer(const std::vector<actors::protocol::SampleRequest>& requests, std::uint64_t version);
  /// The samples that arrived and are still wanted; waits until there are any, `at_most`.
  std::vector<actors::protocol::Completion> take(std::chrono::milliseconds at_most);

  /// Samples of at most `groups` prompts that nobody has leased, or whose leases ended before they
  /// arrived, in the order of their ids.
  std::vector<LeasedGroup> lease(std::size_t groups);
  std::chrono::seconds lease_time() const { return lease_time_; }
  /// The first sample of an id counts, also where its lease has ended. Only the versions of sampled
  /// tokens matter.
  Arrival accept(actors::protocol::Completion completion);
  /// The offer of a sample id, also of one that has arrived; nullopt if there is none.
  std::optional<Offer> find(std::uint64_t sample_id) const;

 private:
  const std::uint64_t group_;
  const std::chrono::seconds lease_time_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable arrived_;
  std::map<std::uint64_t, Offer> offers_;
  std::map<std::uint64_t, actors::protocol::Completion> complete_;
  std::set<std::uint64_t> accepted_;  // the newest, which are refused as duplicates
  std::deque<std::uint64_t> accepted_in_order_;
};

}  // namespace troupe::launch::live
