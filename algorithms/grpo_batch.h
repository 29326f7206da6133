// The arithmetic of a GRPO round as pure functions: from prompts to draws, from samples and verdicts to updates. No actor in sight.
#pragma once

#include <string>
#include <vector>

#include "algorithms/grpo.h"

namespace troupe::algorithms {

using PromptBatch = engine::data::Batch<engine::data::PromptRow>;

/// Samples in the order of their prompts, `group` to each, with what became of them.
struct Sampled {
  engine::data::Experience batch;
  std::vector<protocol::Drawn> drawn;       ///< [N]
  std::vector<protocol::Verdict> verdicts;  ///< [N]
  Metrics metrics;                          ///< of the whole round
};

/// group draws a prompt. The sample id is the prompt's own id times group plus the place in the group: the same after a restart.
std::vector<protocol::Draw> draws_for(const PromptBatch& prompts, int group);
/// At most `parts` runs of nearly equal length, in order; none is empty.
std::vector<std::vector<protocol::Draw>> split_draws(std::vector<protocol::Draw> draws, std::size_t parts);

/// Prompt and completion of every sample as one sequence; the completion is trained on, unless it was cut and cuts are masked.
/// `drawn` are the samples from `first` on of those that draws_for() asked for.
engine::data::Experience assemble(const PromptBatch& prompts, const std::vector<protocol::Drawn>& drawn, std::size_t first,
                                  const GrpoConfig& config);
std::vector<protocol::Submission> submissions_of(const PromptBatch& prompts, const std::vector<protocol::Drawn>& drawn, std::size_t first,
                                                 const GrpoConfig& config);
/// Rewards and advantages. A sample whose reward failed is counted (rewards/failed) and not trained on.
void settle(Sampled& sampled, std::vector<protocol::Verdict> verdicts, const GrpoConfig& config);

/// epochs * minibatches updates; a minibatch holds whole groups, without the samples that could change nothing (advantage 0 where the
/// loss has no other term): constants, gradients and weights are those with them, bit for bit; metrics are means over the others.
std::vector<engine::data::Experience> updates_of(const Sampled& sampled, const GrpoConfig& config);

/// The first `count` samples, for a person to read.
void show(Journal& journal, std::int64_t step, const PromptBatch& prompts, const Sampled& sampled, int count);

}  // namespace troupe::algorithms
