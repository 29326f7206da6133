// What is asked of a rollout and of a verifier: samples, and judgement of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/base/json.h"
#include "engine/generate/sampling_params.h"

namespace troupe::actors::protocol {

/// One sample to be drawn. Its tokens depend on the weights, the prompt, the sampling and
/// `sample_id` alone.
struct Draw {
  std::vector<std::int32_t> prompt;
  std::uint64_t sample_id = 0;
};
inline auto fields(Draw& d) {
  return std::tie(d.prompt, d.sample_id);
}

/// One finished sample.
struct Drawn {
  std::uint64_t sample_id = 0;
  std::vector<std::int32_t> ids;  ///< the completion, an end token included
  std::vector<float>
      logp;  ///< [ids] under the sampling temperature: the bits that the trainer computes for them
  std::string text;           ///< special tokens left out, stop string cut off
  std::string finish_reason;  ///< "stop" or "length"
  std::uint64_t version = 0;  ///< oldest weights that made a token of it
};
inline auto fields(Drawn& d) {
  return std::tie(d.sample_id, d.ids, d.logp, d.text, d.finish_reason, d.version);
}

/// Replies come in the order of `draws`.
struct Generate {
  using Reply = std::vector<Drawn>;
  static constexpr std::string_view name = "generate";
  std::vector<Draw> draws;
  engine::generate::SamplingParams sampling;
};
inline auto fields(Generate& m) {
  return std::tie(m.draws, m.sampling);
}

/// A completion and what it is compared with.
struct Submission {
  std::string prompt, completion;
  Json answer;  ///< the row's ground truth, or null
};
inline auto fields(Submission& s) {
  return std::tie(s.prompt, s.completion, s.answer);
}

/// A step of a completion and what it is worth by itself, weighted as its rule is.
struct StepReward {
  std::int32_t end = 0;  ///< where it ends: an index into the completion's tokens (Drawn::ids)
  double reward = 0;
};
inline auto fields(StepReward& s) {
  return std::tie(s.end, s.reward);
}

/// A failure is a result: `reward` is then absent, `failure` says why, and the sample is counted,
/// never scored 0 in silence.
struct Verdict {
  std::optional<double> reward;
  std::vector<std::pair<std::string, double>> parts;  ///< by rule, before weighting
  std::string failure;
  std::vector<StepReward> steps;  ///< of process rewards; in the order of their ends
  double from_steps =
      0;  ///< how much of `reward` is these steps', taken together as their rule says
};
inline auto fields(Verdict& v) {
  return std::tie(v.reward, v.parts, v.failure, v.steps, v.from_steps);
}

struct Judge {
  using Reply = std::vector<Verdict>;
  static constexpr std::string_view name = "judge";
  std::vector<Submission> submissions;
};
inline auto fields(Judge& m) {
  return std::tie(m.submissions);
}

}  // namespace troupe::actors::protocol
