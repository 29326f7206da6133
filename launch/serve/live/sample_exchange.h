// SampleExchange: samples that a rollout offers, programs lease and make, and the rollout takes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/protocol/generate.h"
#include "actors/roles/leases.h"
#include "engine/base/json/json.h"

namespace troupe::launch::serve::live {

/// The samples of one prompt that a program has leased.
struct LeasedGroup {
  std::uint64_t group = 0;
  std::vector<std::uint64_t> sample_ids;
  std::vector<std::string> leases;  ///< secret of each sample (random_token())
  std::vector<std::int32_t> prompt;
  Json answer;
};

/// What became of a sample that arrived.
enum class Arrival {
  accepted,
  duplicate,    ///< a sample of this id was accepted before
  not_offered,  ///< no such sample is wanted, or not any more
  not_leased,   ///< the sample is not leased, or not with this secret, or not to this client
  too_old,      ///< a token has a version before Offer::oldest
};

/// A sample that is offered.
struct Offer {
  actors::protocol::SampleRequest request;
  std::uint64_t oldest = 0;  ///< version that may have sampled its tokens
  std::string lease = {};    ///< token of the last lease; filled by find()
};

/// Who sends a sample, and with which lease.
struct Claim {
  std::uint64_t sample_id = 0;
  std::string lease, client;
};

/// Every function may be called from any thread.
class SampleExchange {
 public:
  struct Terms {
    std::int64_t group = 1;  ///< consecutive sample ids of a prompt
    std::chrono::seconds lease_time{600};
    std::size_t clients = 1;     ///< that may lease
    std::size_t max_leases = 0;  ///< prompts that a client may have at a time; 0: its share
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  };
  explicit SampleExchange(const Terms& terms) : terms_(terms) {}

  /// These samples are wanted and no others: a lease of another sample ends. A new one must have
  /// tokens of `version` and later ones only.
  void offer(const std::vector<actors::protocol::SampleRequest>& requests, std::uint64_t version);
  /// The samples that arrived and are still wanted; waits until there are any, `at_most`.
  std::vector<actors::protocol::Completion> take(std::chrono::milliseconds at_most);

  /// Samples of at most `groups` prompts that nobody has leased, or whose leases ended before they
  /// arrived, in the order of their ids. A client has max_leases prompts at a time, by default
  /// 1 / clients of those that are offered, rounded up. Where it is not the only one, samples that
  /// it let expire are for the others as long again.
  std::vector<LeasedGroup> lease(std::size_t groups, const std::string& client);
  std::chrono::seconds lease_time() const { return terms_.lease_time; }
  /// What accept() would answer for a sample of new versions.
  Arrival check(const Claim& claim) const;
  /// Only the versions of sampled tokens matter. `claim` is of the completion's id.
  Arrival accept(actors::protocol::Completion completion, const Claim& claim);
  /// The offer of a sample id, also of one that has arrived; nullopt if there is none.
  std::optional<Offer> find(std::uint64_t sample_id) const;

 private:
  std::uint64_t group_of(std::uint64_t sample_id) const {
    return sample_id / static_cast<std::uint64_t>(terms_.group);
  }
  /// Prompts that a client may lease now.
  std::size_t allowed(const std::string& client, std::chrono::steady_clock::time_point now) const;
  Arrival check_locked(const Claim& claim) const;

  const Terms terms_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable arrived_;
  std::map<std::uint64_t, Offer> offers_;
  actors::roles::Leases leases_;  // of samples that are offered
  std::map<std::uint64_t, actors::protocol::Completion> complete_;
  std::set<std::uint64_t> accepted_;  // the newest, which are refused as duplicates
  std::deque<std::uint64_t> accepted_in_order_;
};

}  // namespace troupe::launch::serve::live
