// Messages that models answer: train, score, publish and replace weights, save.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "actors/protocol/weight_transfer.h"
#include "engine/base/json/json.h"
#include "engine/base/memory/shared_array.h"
#include "engine/data/experience.h"
#include "engine/loss/loss.h"

namespace troupe::actors::protocol {

/// How often the routers of a mixture of experts chose each expert.
struct ExpertLoads {
  std::vector<std::int64_t> layers;  ///< those with experts
  std::vector<std::int64_t> counts;  ///< [layers, E] choices
};
inline auto fields(ExpertLoads& l) {
  return std::tie(l.layers, l.counts);
}

/// Statistics of one optimizer step.
struct StepStats {
  double loss = 0;
  double grad_norm = 0;  ///< global norm before clipping
  double learning_rate = 0;
  double tokens = 0;                                    ///< tokens of the batch
  std::uint64_t version = 0;                            ///< of the weights after the step
  std::vector<std::pair<std::string, double>> metrics;  ///< of the loss, averaged over the batch
  std::optional<double> entropy;                        ///< mean over the trained tokens, in nats
  std::optional<double> ratio;  ///< mean of pi / pi_old over the trained tokens
  ExpertLoads experts;          ///< of the batch
};
inline auto fields(StepStats& s) {
  return std::tie(s.loss, s.grad_norm, s.learning_rate, s.tokens, s.version, s.metrics, s.entropy,
                  s.ratio, s.experts);
}

/// One forward and backward pass over the batch (in micro-batches) and one optimizer step. A
/// gradient that is not finite is an error (Errc::bad_input); the weights stay unchanged.
struct TrainStep {
  using Reply = StepStats;
  static constexpr std::string_view name = "train_step";
  engine::data::Experience batch;
  engine::loss::LossSpec loss;
  double learning_rate = 0;
};
inline auto fields(TrainStep& m) {
  return std::tie(m.batch, m.loss, m.learning_rate);
}

/// log p of every token: [T], 0 where the mask is 0.
struct Logprobs {
  using Reply = std::vector<float>;
  static constexpr std::string_view name = "logprobs";
  engine::data::Experience batch;
  double temperature = 1;
  bool base = false;  ///< without the adapter: log p of the model that training started from
};
inline auto fields(Logprobs& m) {
  return std::tie(m.batch, m.temperature, m.base);
}

/// Outputs of the score head at every token with a mask of 1, or the log-probabilities of
/// `candidates` under the language head if there are any: [T, C], row-major; 0 where the mask is 0.
struct Score {
  using Reply = std::vector<float>;
  static constexpr std::string_view name = "score";
  engine::data::Experience batch;
  engine::loss::ReadAt at = engine::loss::ReadAt::token;
  std::vector<std::int32_t> candidates;
};
inline auto fields(Score& m) {
  return std::tie(m.batch, m.at, m.candidates);
}

/// Base of messages without fields.
struct NoFields {};
inline auto fields(NoFields&) {
  return std::tie();
}

/// Frees the memory of a model that is no longer needed; later requests fail with Errc::closed.
struct Release : NoFields {
  using Reply = void;
  static constexpr std::string_view name = "release";
};

/// State of a run besides the models and optimizers.
struct RunState {
  Json data;            ///< position in the data: engine::data::Loader::state()
  Json algorithm;       ///< of adaptive controllers, an object, or null
  Json selection = {};  ///< best values of the evaluations, an object, or null
  /// Step of the best checkpoint, which is kept; 0: none.
  std::int64_t best_step = 0;
  /// Batches of samples that were trained; 0 for methods without rollouts.
  std::int64_t batches = 0;
  /// Older versions of the weights that the next batches are sampled with, which it has.
  std::vector<std::uint64_t> versions = {};
  /// Where the run ends within a rollout step: the step before it, whose checkpoint is kept, for a
  /// run that is extended; -1: the rollout step is complete.
  std::int64_t round_start = -1;
  /// Samples that are finished but not trained, which it has (async.mode free).
  std::uint64_t finished = 0;
  /// Folder below OUTPUT with the files of these versions and samples, which the policy's
  /// checkpoint takes over; "": none.
  std::string kept = {};
  Json journal = {};  ///< what the journal has at this step, an object, or null
};
inline auto fields(RunState& s) {
  return std::tie(s.data, s.algorithm, s.selection, s.best_step, s.batches, s.versions,
                  s.round_start, s.finished, s.kept, s.journal);
}

/// Writes OUTPUT/checkpoint-STEP (weights, optimizer, `state`) and points `latest` at it. Replies
/// with its path when it is durable; with `overlapped` at once, with an empty text: the checkpoint
/// is written while training continues, and FinishSave tells its end.
struct Save {
  using Reply = std::string;
  static constexpr std::string_view name = "save";
  std::int64_t step = 0;
  RunState state;
  bool overlapped = false;
};
inline auto fields(Save& m) {
  return std::tie(m.step, m.state, m.overlapped);
}

/// Replies with the path of the checkpoint of an overlapped Save once it is durable, or the error
/// of its writing, also to later ones; with an empty text while it is being written, unless `wait`,
/// and where there is none.
struct FinishSave {
  using Reply = std::string;
  static constexpr std::string_view name = "finish_save";
  bool wait = false;
};
inline auto fields(FinishSave& m) {
  return std::tie(m.wait);
}

/// A few tokens and their log-probabilities: two models that agree on them hold the same weights in
/// the same layout.
struct Probe {
  std::vector<std::int32_t> tokens;
  /// [tokens], the first is 0; of a model with a score head its scores, [tokens, labels].
  std::vector<float> logp;
};
inline auto fields(Probe& p) {
  return std::tie(p.tokens, p.logp);
}

/// Weights of one version: every trained logical tensor (all of them, or an adapter's over a base
/// that the receiver has too), flat, in the order of models::parameter_list. Shared and immutable.
struct Weights {
  std::uint64_t version = 0;  ///< as in Publish
  std::uint64_t updates = 0;  ///< optimizer updates that made them
  SharedArray<float> values;
  std::vector<std::uint64_t> checksums;  ///< of each tensor's values (engine/checkpoint/manifest.h)
  Probe probe;
  /// Between processes `values` are none: they come in parts, or are `count` values in `memory`.
  std::uint64_t count = 0;
  std::optional<SharedMemoryName> memory = std::nullopt;
};
inline auto fields(Weights& w) {
  return std::tie(w.version, w.updates, w.values, w.checksums, w.probe, w.count, w.memory);
}

/// Replies with the current weights, which the algorithm calls `version`: the number of batches
/// that they were trained on, whose updates may be several.
struct Publish {
  using Reply = Weights;
  static constexpr std::string_view name = "publish";
  std::uint64_t version = 0;
  /// For another process: the values stay here until the next Publish, for ReadWeights.
  bool in_parts = false;
  bool keep_before = false;    ///< in_parts: and those before them, for deltas
  bool shared_memory = false;  ///< in_parts: in shared memory, where the system has any
  bool as_bf16 = false;        ///< in_parts: weights that only products in bf16 read, rounded to it
};
inline auto fields(Publish& m) {
  return std::tie(m.version, m.in_parts, m.keep_before, m.shared_memory, m.as_bf16);
}

/// Loads weights beside the current ones, which stay in use: those of the message, or without
/// values those that LoadWeights or MapWeights brought. Replies with the log-probabilities of the
/// probe. Errors: a number of values other than the model's (Errc::bad_input), a version older than
/// the current one (bad_input), a tensor with a wrong checksum (corrupt).
struct PrepareWeights {
  using Reply = std::vector<float>;
  static constexpr std::string_view name = "prepare_weights";
  Weights weights;
};
inline auto fields(PrepareWeights& m) {
  return std::tie(m.weights);
}

/// Switches to the prepared weights, between tokens. Errc::bad_input when this version was not
/// prepared.
struct CommitWeights {
  using Reply = void;
  static constexpr std::string_view name = "commit_weights";
  std::uint64_t version = 0;
};
inline auto fields(CommitWeights& m) {
  return std::tie(m.version);
}

/// Mixes the prepared weights into the current ones (TR-DPO's reference): share * prepared +
/// (1 - share) * current. Errc::bad_input when this version was not prepared.
struct MixWeights {
  using Reply = void;
  static constexpr std::string_view name = "mix_weights";
  std::uint64_t version = 0;
  double share = 0;
};
inline auto fields(MixWeights& m) {
  return std::tie(m.version, m.share);
}

}  // namespace troupe::actors::protocol
