// Chunks: a request for samples, divided so that the rollouts share it and the verifier, the reward
// models and the reference work on one part while the rollouts generate the next.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "actors/runtime/changes.h"
#include "algorithms/rollout/finished_samples.h"
#include "algorithms/rollout/samples.h"

namespace troupe::algorithms {

/// A consecutive range of the samples, from requests to rewards. Its content does not depend on
/// which rollout generated it, or when.
struct Chunk {
  std::size_t first = 0;  ///< index of its first sample
  std::vector<protocol::SampleRequest> requests;
  std::vector<std::uint64_t> sample_ids;  ///< of the requests
  std::vector<protocol::Completion> completions;
  engine::data::Experience batch;
  std::optional<actors::Reply<std::vector<protocol::RewardResult>>> rule_rewards, model_rewards;
  std::optional<actors::Reply<std::vector<float>>> reference_logp;
};

/// The chunks of one request. Chunks that are never requested are left out by stop().
struct ChunkedRequest {
  ChunkedRequest(PromptBatch prompts, RolloutOptions options, bool with_reference,
                 std::size_t parts);
  bool generated() const { return done == chunks.size(); }
  /// A chunk is to be requested.
  bool open() const { return next < chunks.size() || !returned.empty(); }
  /// The next one of these: those that a lost rollout had come first.
  Chunk& take();
  /// No further chunk is requested, and those that are generated are not rewarded.
  void stop() {
    next = chunks.size();
    returned.clear();
    stopped = true;
  }

  const PromptBatch prompts;
  const RolloutOptions options;
  const bool with_reference;
  std::vector<Chunk> chunks;
  std::size_t next = 0;         ///< first chunk that has not been requested
  std::deque<Chunk*> returned;  ///< requested of rollouts that were lost
  std::size_t done = 0;         ///< chunks that are generated
  bool stopped = false;
  FinishedSamples* finished = nullptr;  ///< as in Sampling
  std::int64_t batch = 0;
  SampleLedger* ledger = nullptr;  ///< as in Sampling
};

/// Keeps one rollout supplied with chunks until none is left, and sends each to the verifier, the
/// reward models and the reference; the next chunk waits in its mailbox. A faster rollout generates
/// more of the chunks. Only samples that are not finished are requested. Notifies `generated` (may
/// be null) when the last chunk is generated. When an ask fails, the chunks that the rollout has
/// are returned to the request.
Task<void> generate_chunks(Cluster& c, const RolloutRef& rollout, ChunkedRequest& request,
                           actors::Changes* generated);

/// All samples of a generated request, when their rewards have arrived.
Task<RolloutBatch> collect_chunks(ChunkedRequest& request);

}  // namespace troupe::algorithms
