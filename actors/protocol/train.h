// What is asked of a trained model: update, score, publish, save.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/base/json.h"
#include "engine/base/shared_array.h"
#include "engine/data/experience.h"
#include "engine/loss/loss.h"

namespace troupe::actors::protocol {

/// The outcome of one optimizer step.
struct StepStats {
  double loss = 0;
  double grad_norm = 0;  ///< global norm before clipping
  double learning_rate = 0;
  double tokens = 0;          ///< tokens that went through the network
  std::uint64_t version = 0;  ///< of the weights after the step
  std::vector<std::pair<std::string, double>>
      metrics;  ///< the loss's own report, averaged over the batch
};
inline auto fields(StepStats& s) {
  return std::tie(s.loss, s.grad_norm, s.learning_rate, s.tokens, s.version, s.metrics);
}

/// One forward and backward pass over the batch (in micro-batches) and one optimizer step. A step
/// whose gradient is not finite is refused (Errc::bad_input), the weights stay.
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

/// log p of every token under the asked model's weights: [T], 0 where the mask is 0.
struct Logprobs {
  using Reply = std::vector<float>;
  static constexpr std::string_view name = "logprobs";
  engine::data::Experience batch;
  double temperature = 1;
  bool base = false;  ///< under those of its base without the adapter, which is the model that
                      ///< training began from
};
inline auto fields(Logprobs& m) {
  return std::tie(m.batch, m.temperature, m.base);
}

/// What the asked model's score head says of every token that the mask names, or, where
/// `candidates` are given, their log-probabilities under its language head: [T * C], the columns of
/// one token next to each other; 0 where the mask is 0. What critics and reward models answer.
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

/// The asked model is not needed any more: its memory is freed, later questions are refused
/// (Errc::closed).
struct Release {
  using Reply = void;
  static constexpr std::string_view name = "release";
};
inline auto fields(Release&) {
  return std::tie();
}

/// Writes OUTPUT/checkpoint-STEP (weights, optimizer, `state`) and points `latest` at it. The reply
/// is its path.
struct Save {
  using Reply = std::string;
  static constexpr std::string_view name = "save";
  std::int64_t step = 0;
  Json state;  ///< what the algorithm needs to go on: the loader's place, counters
};
inline auto fields(Save& m) {
  return std::tie(m.step, m.state);
}

/// A few tokens and what a model thinks of them: two models that agree on it hold the same weights,
/// in the same places.
struct Probe {
  std::vector<std::int32_t> tokens;
  std::vector<float> logp;  ///< [tokens.size()], the first is 0; of a model with a score head its
                            ///< scores, [tokens.size() * labels]
};
inline auto fields(Probe& p) {
  return std::tie(p.tokens, p.logp);
}

/// The weights of one version: every logical tensor that is trained (all of them, or an adapter's
/// over a base that the receiver has, too), flat, in the order of models::parameter_list. Shared,
/// never changed.
struct Weights {
  std::uint64_t version = 0;
  SharedArray<float> values;
  std::vector<std::uint64_t> checksums;  ///< of each tensor's values (engine/checkpoint/checksum.h)
  Probe probe;
};
inline auto fields(Weights& w) {
  return std::tie(w.version, w.values, w.checksums, w.probe);
}

struct Publish {
  using Reply = Weights;
  static constexpr std::string_view name = "publish";
};
inline auto fields(Publish&) {
  return std::tie();
}

/// Takes weights in beside the present ones, which stay in use. Refused: another number of values
/// than the model has (Errc::bad_input), a version older than the present one (bad_input), a tensor
/// that does not have its checksum (corrupt). The reply is the probe's logp.
struct PrepareWeights {
  using Reply = std::vector<float>;
  static constexpr std::string_view name = "prepare_weights";
  Weights weights;
};
inline auto fields(PrepareWeights& m) {
  return std::tie(m.weights);
}

/// Puts the prepared weights to use, between tokens. Errc::bad_input when this version was not
/// prepared.
struct CommitWeights {
  using Reply = void;
  static constexpr std::string_view name = "commit_weights";
  std::uint64_t version = 0;
};
inline auto fields(CommitWeights& m) {
  return std::tie(m.version);
}

/// A model that follows another (TR-DPO's reference): its weights become share * the prepared ones
/// + (1 - share) * its own. Errc::bad_input when this version was not prepared; mixing uses it up.
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
