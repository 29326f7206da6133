// Scenario: what a seed decides about one simulated run, and the samples that its batches have to
// consist of, computed without the control flow under test.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "algorithms/grpo.h"
#include "tests/support/simulated_transport.h"

namespace troupe::simulator {

using PromptLoader = engine::data::Loader<engine::data::PromptRow>;
using Milliseconds = std::chrono::milliseconds;

/// What ends an incarnation of the run before its last step.
enum class End {
  none,
  crash,    ///< SIGKILL of all processes
  node,     ///< SIGKILL of the process of a rollout or of the verifier: the run fails
  signal,   ///< SIGTERM: the run ends after a step
  shorter,  ///< the run had fewer steps, and is extended
};

struct Disruption {
  End end = End::none;
  Milliseconds at{0};        ///< crash, node, signal: time since the start of the incarnation
  std::uint64_t node = 0;    ///< 0: the verifier, i + 1: rollout i
  std::int64_t batches = 0;  ///< shorter: in all
};

struct Scenario {
  explicit Scenario(std::uint64_t seed);

  std::uint64_t seed;
  std::int64_t prompts = 2;  ///< of an optimizer step
  int group = 2, minibatches = 1;
  std::int64_t batches = 4, save_every = 0, eval_every = 0;  ///< save, eval: in steps
  std::uint64_t rollouts = 1;
  std::size_t chunks = 1;
  bool dynamic = false;
  algorithms::AsyncConfig async;
  test::Faults faults;
  std::vector<Disruption> disruptions;  ///< of the first incarnations; the one after them has none

  std::int64_t samples() const { return prompts * minibatches * group; }
  std::int64_t batches_in_flight() const;
  /// In one line, to reproduce a failure.
  std::string text() const;
  algorithms::GrpoConfig config() const;
  PromptLoader data() const;
  algorithms::HeldOutPrompts held_out() const;
};

/// The reward of a sample; half of the samples of training have 1.
double reward_of(std::uint64_t sample_id);
/// True for a sample of a held-out prompt.
bool held_out_sample(std::uint64_t sample_id);

/// The samples of each batch: of the prompts in their order, without the groups that dynamic
/// sampling discards.
struct ExpectedBatches {
  explicit ExpectedBatches(const Scenario& scenario);
  std::vector<std::vector<std::uint64_t>> ids;        ///< [batches] sample ids
  std::vector<std::string> data;                      ///< [batches] the loader's state afterwards
  std::map<std::uint64_t, std::int64_t> sampled_for;  ///< batch of every sample, kept or not
  std::map<std::uint64_t, std::int32_t> prompts;      ///< first token of every sample
};

}  // namespace troupe::simulator
