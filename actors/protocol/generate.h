// Messages that a rollout answers: samples from its weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/base/sets/id_sets.h"
#include "engine/generate/sampling_params.h"

namespace troupe::actors::protocol {

using engine::generate::FinishReason;

/// One sample to generate. Its tokens depend on the weights, the prompt, the sampling parameters
/// and `sample_id` alone.
struct SampleRequest {
  std::vector<std::int32_t> prompt;
  std::uint64_t sample_id = 0;
  Json answer = {};  ///< the row's ground truth, for a sample that another program makes; or null
};
inline auto fields(SampleRequest& r) {
  return std::tie(r.prompt, r.sample_id, r.answer);
}

/// Consecutive tokens that weights of one version sampled.
struct VersionRun {
  std::uint64_t version = 0;  ///< batches that the weights were trained on
  std::uint32_t count = 0;    ///< tokens, at least 1
  bool operator==(const VersionRun&) const = default;
};
inline auto fields(VersionRun& r) {
  return std::tie(r.version, r.count);
}

/// One finished sample.
struct Completion {
  std::uint64_t sample_id = 0;
  std::vector<std::int32_t> ids;  ///< generated tokens, an end token included
  /// [ids] under the sampling temperature, over the tokens of `masks`: the bits that the trainer
  /// computes for them.
  std::vector<float> logp;
  /// [ids] the tokens that each was sampled from, or empty: the whole vocabulary.
  IdSets masks;
  std::string text;  ///< without special tokens, cut at the stop string
  FinishReason finish_reason = FinishReason::length;
  std::vector<VersionRun> versions;  ///< of `ids`, in their order; the counts add up to [ids]
  std::uint64_t updates = 0;         ///< optimizer updates of the oldest of these weights
  /// Changes of the weights between two tokens, and those of them after which it started again.
  std::uint32_t interruptions = 0, restarts = 0;
  /// Of a sample that another program made: its reward, and which of `ids` the policy sampled (1)
  /// and which others wrote (0), such as the outputs of tools; empty: all were sampled.
  std::optional<double> reward = std::nullopt;
  std::vector<std::uint8_t> sampled = {};
};
inline auto fields(Completion& c) {
  return std::tie(c.sample_id, c.ids, c.logp, c.masks, c.text, c.finish_reason, c.versions,
                  c.updates, c.interruptions, c.restarts, c.reward, c.sampled);
}

/// Replies come in the order of `requests`.
struct Generate {
  using Reply = std::vector<Completion>;
  static constexpr std::string_view name = "generate";
  std::vector<SampleRequest> requests;
  engine::generate::SamplingParams sampling;
};
inline auto fields(Generate& m) {
  return std::tie(m.requests, m.sampling);
}

/// Ends the samples that are being generated, all of them where `sample_ids` is empty: they are
/// returned with their tokens so far and FinishReason::cancelled. Replies with their number, which
/// does not include samples of a Generate that has not begun.
struct CancelSamples {
  using Reply = std::uint64_t;
  static constexpr std::string_view name = "cancel_samples";
  std::vector<std::uint64_t> sample_ids;
};
inline auto fields(CancelSamples& m) {
  return std::tie(m.sample_ids);
}

}  // namespace troupe::actors::protocol
