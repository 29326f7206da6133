// The history of a run: that each sample of its surviving rows was trained once, and why not.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "launch/audit/events.h"
#include "launch/audit/findings.h"

namespace troupe::launch::audit {

class History {
 public:
  /// `chain` and `findings` outlive it.
  History(const Chain& chain, Findings& findings) : chain_(chain), findings_(findings) {}
  /// Rows in their order.
  void visit(const Event& event);
  /// What is known after the last row.
  void finish();

  /// Ids of the samples of a complete batch by its first step.
  const std::map<std::int64_t, std::set<std::int64_t>>& batches() const { return by_step_; }
  /// Hashes of weights by the number of batches, with what rounded them; of the surviving rows.
  const std::map<std::int64_t, std::string>& weights() const { return weights_; }
  /// Hashes of manifests by step, the last of each.
  const std::map<std::int64_t, std::string>& saved() const { return saved_; }

 private:
  struct SampleState {
    std::int64_t batch = -1;
    int admitted = 0, leased = 0, sampled = 0, rewarded = 0, batched = 0, dropped = 0;
    std::string hash, versions;
    std::int64_t sampled_at = 0;  ///< number of starts before it
  };
  void start(const Event& event);
  void commit(const Event& event);
  void note_samples(const Event& event);
  void note_sample(const Event& event, std::int64_t id);
  void note_sampled(const Event& event, std::int64_t id, const Json& hash, const Json& versions);
  bool is_unrecorded(std::int64_t version) const;
  void check_versions(const Event& event, std::int64_t id, const Json& versions);
  void check_sample(std::int64_t id, const SampleState& sample);

  const Chain& chain_;
  Findings& findings_;
  std::unordered_map<std::int64_t, SampleState> samples_;
  std::map<std::int64_t, std::set<std::int64_t>> batched_;  ///< by batch, not complete
  std::map<std::int64_t, std::set<std::int64_t>> by_step_;
  std::set<std::int64_t> versions_;  ///< published, also by rows that were taken back
  std::map<std::int64_t, std::string> weights_, saved_;
  std::optional<std::int64_t> last_step_, last_batch_;
  std::int64_t starts_ = 0, eta_ = 0, base_step_ = 0;
  bool bounded_ = true;  ///< samples have at most eta_ of staleness
  bool repeats_ = true;  ///< a sample that is made again has the same tokens
};

}  // namespace troupe::launch::audit
