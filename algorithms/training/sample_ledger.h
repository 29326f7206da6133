// SampleLedger: what an algorithm records of its samples, steps and checkpoints in the ledger of
// the run (docs/reliability.md).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/protocol/generate.h"
#include "actors/protocol/reward.h"
#include "actors/protocol/train.h"
#include "engine/base/json/json.h"
#include "engine/checkpoint/running_checksum.h"
#include "engine/ledger/ledger.h"

namespace troupe::algorithms {

/// Functions throw Failure with the first error of the ledger. `batch` counts from 0.
class SampleLedger {
 public:
  explicit SampleLedger(std::unique_ptr<engine::ledger::Ledger> ledger);

  /// The run starts after `step` steps. `anchor`: of the checkpoint that it resumes from; what was
  /// recorded after it is taken back. Absent: nothing before this row is known to belong to the
  /// run. `about`: members that describe the run.
  void started(std::int64_t step, const std::optional<engine::ledger::Anchor>& anchor, Json about);
  void admitted(std::int64_t batch, const std::vector<actors::protocol::SampleRequest>& requests);
  void leased(std::int64_t batch, const std::vector<actors::protocol::SampleRequest>& requests,
              const std::string& rollout);
  void sampled(std::int64_t batch,
               const std::vector<const actors::protocol::Completion*>& completions);
  void rewarded(std::int64_t batch, const std::vector<std::uint64_t>& sample_ids,
                const std::vector<actors::protocol::RewardResult>& rewards);
  void batched(std::int64_t batch, const std::vector<actors::protocol::Completion>& completions);
  void dropped(std::int64_t batch, const std::vector<std::uint64_t>& sample_ids,
               std::string_view reason);
  /// Adds a batch of an update to the hash of the next committed().
  void trained(const engine::data::Experience& batch);
  /// Steps (previous, step] are complete; `state` is what a run resumes from, `selection` that of
  /// its evaluations. With samples, they were the updates of batch state.batches - 1.
  void committed(std::int64_t previous, std::int64_t step, const actors::protocol::RunState& state,
                 const Json& selection);
  /// `rounded`: the weights are rounded to bf16.
  void published(const actors::protocol::Weights& weights, bool rounded);
  /// Waits until all rows are durable, and returns {"length", "head"} for the checkpoint of `step`,
  /// after `batches` batches. What follows is written to another segment.
  Json anchor(std::int64_t step, std::int64_t batches);
  /// The checkpoint `path` of `step` is complete. Removes segments whose batches are part of this
  /// one and the one before.
  void saved(std::int64_t step, const std::string& path);

  engine::ledger::LedgerCounts counts() const { return ledger_->counts(); }

 private:
  void append(engine::ledger::Kind kind, std::optional<std::int64_t> batch,
              std::optional<std::int64_t> step, Json detail = {}, std::string hash = {});
  void append_samples(engine::ledger::Kind kind, std::int64_t batch,
                      std::vector<std::int64_t> samples, Json detail = {});
  void remove_segments(std::int64_t batches);

  std::unique_ptr<engine::ledger::Ledger> ledger_;
  engine::checkpoint::RunningChecksum trained_;
  std::map<std::int64_t, std::int64_t> last_batch_;  ///< by segment
  std::map<std::int64_t, std::int64_t> anchored_;    ///< batches by step, of checkpoints
  std::optional<std::int64_t> saved_;                ///< batches of the newest complete one
};

/// The form of a completion in a segment, where those of a row follow each other: the size of its
/// header (8 bytes, little-endian), the header, and each part after its size; header and parts are
/// those of transports/wire/codec.h.
std::string payload_of(const actors::protocol::Completion& completion);

/// The completion in a payload. Throws Failure (Errc::corrupt); `what` starts the message.
actors::protocol::Completion completion_of(const std::string& payload, std::string_view what);

/// XXH3-128 of the checksums of all tensors (8 bytes each, little-endian) in ascending order.
std::string hash_of_weights(std::vector<std::uint64_t> checksums);

}  // namespace troupe::algorithms
