#include "launch/commands/explain/run_time.h"

#include <algorithm>
#include <cmath>

#include "engine/base/text/text.h"
#include "engine/models/flops.h"
#include "launch/commands/explain/preview_text.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/recipes.h"

namespace troupe::launch::commands {

namespace {

/// Times longer than the products alone at the measured rate: of training and scoring passes, with
/// products of the model's widths, softmax, norms and the optimizer; of sampling, where a product
/// has one row for each sequence. Estimates, not yet fitted to runs: tests/explain/estimates.py
/// shows how far they are off.
constexpr double slow_passes = 4, slow_sampling = 6;
/// Bytes that a machine reads in the time of a FLOP: sampling reads all weights for each token.
constexpr double bytes_per_flop = 0.1;
/// Seconds for a layer of a step with any number of tokens, and of a run without a step.
constexpr double layer_seconds = 2e-3, start_seconds = 0.5;

/// FLOPs of a pass over the sequences: the forward pass, or with the backward pass.
struct PassWork {
  engine::models::ForwardFlops forward;
  double forward_only(const TokenCounts& counts) const {
    return (forward.layers + forward.head) * counts.tokens + forward.attention * counts.squares / 2;
  }
  double training(const TokenCounts& counts, bool adapter) const {
    return (adapter ? 2 : 3) * (forward.layers + forward.head) * counts.tokens +
           3 * forward.attention * counts.squares / 2;
  }
};

/// Passes that score: of the reference, and of the critic.
double scoring_passes(const recipes::RolesNeeded& roles) {
  return (roles.reference.needed ? 1.0 : 0.0) + (roles.critic.needed ? 1.0 : 0.0);
}

struct Work {
  double training = 0, sampling = 0;  ///< FLOPs
};

Work work_of(const config::RunConfig& config, const engine::models::DecoderSpec& spec,
             const RunSize& size, const TokenCounts& counts) {
  const PassWork pass{engine::models::forward_flops(spec)};
  const recipes::RolesNeeded roles = recipes::roles_of(config);
  Work work;
  work.training = size.passes * pass.training(counts, recipes::adapts(config)) +
                  scoring_passes(roles) * pass.forward_only(counts);
  if (roles.critic.needed) work.training += size.passes * pass.training(counts, false);
  if (roles.rollout.needed) work.sampling = pass.forward_only(counts);
  return work;
}

/// Seconds of reading the weights for every token that is sampled at the same time.
double reading_seconds(const config::RunConfig& config, const engine::models::DecoderSpec& spec,
                       const RunSize& size, double flops) {
  if (size.samples == 0) return 0;
  const double together = std::min(static_cast<double>(config.rollout.generator.max_sequences),
                                   size.samples / static_cast<double>(size.steps)),
               steps = size.samples / std::max(1.0, together) *
                       static_cast<double>(config.rollout.sampling.max_new_tokens);
  return steps * (4 * static_cast<double>(spec.parameter_count()) / (bytes_per_flop * flops) +
                  layer_seconds / 10 * static_cast<double>(spec.layers));
}

// What async.mode lets overlap, and the gain if both sides have processors of their own: the sum of
// their times divided by the longer one.
double gain_of(const config::RunConfig& config, double sampling, double training) {
  const bool own_threads = config.rollout.threads > 0 && config.train.threads > 0;
  if (own_threads)
    sampling *=
        static_cast<double>(config.train.threads) / static_cast<double>(config.rollout.threads);
  return (sampling + training) / std::max(sampling, training);
}

std::string overlap_text(const config::RunConfig& config, const RunSize& size) {
  const char* label = "overlap";
  if (!recipes::roles_of(config).rollout.needed) return "";
  if (!config.async.on()) return labelled_line(label, "none: async.mode is off");
  if (config.async.eta == 0) return labelled_line(label, "none: async.eta is 0");
  const double all = flops_per_parameter(config, size), own = 2;
  const bool own_threads = config.rollout.threads > 0 && config.train.threads > 0;
  const double threads = own_threads ? static_cast<double>(config.train.threads) /
                                           static_cast<double>(config.rollout.threads)
                                     : 1;
  const double sampling = own * threads, training = all - own;
  const double share = 100 * sampling / (sampling + training);
  std::string text =
      labelled_line(label, "sampling and rewards of later batches, with training") +
      labelled_line("", cat(to_text(share, 0), " % and ", to_text(100 - share, 0),
                            " % of the FLOPs: at most ", to_text(gain_of(config, own, training), 2),
                            " times as fast"));
  if (config.rollout.threads == 0)
    text += labelled_line("", "in groups of processes; not in one: rollout.threads is 0");
  return text;
}

}  // namespace

double flops_per_parameter(const config::RunConfig& config, const RunSize& size) {
  const recipes::RolesNeeded roles = recipes::roles_of(config);
  double flops = (recipes::adapts(config) ? 4 : 6) * size.passes;
  if (roles.reference.needed) flops += 2;
  if (roles.rollout.needed) flops += 2;
  if (roles.critic.needed) flops += 2 + 6 * size.passes;
  return flops;
}

TimeRange time_of_run(const config::RunConfig& config, const engine::models::DecoderSpec& spec,
                      const RunSize& size, double flops) {
  const Work least = work_of(config, spec, size, size.least),
             most = work_of(config, spec, size, size.most);
  const bool overlaps = config.async.on() && config.async.eta > 0 && least.sampling > 0;
  TimeRange time;
  time.least = (least.training + least.sampling) / flops /
               (overlaps ? gain_of(config, least.sampling, least.training) : 1);
  const auto& grid = config.parallel;
  const double steps = static_cast<double>(size.steps),
               batches = std::max(1.0, size.most.tokens * size.passes / steps /
                                           static_cast<double>(config.train.micro_batch_tokens)),
               layers = static_cast<double>(spec.layers * grid.pp * grid.tp * grid.dp * grid.cp);
  time.most = start_seconds + steps * batches * layers * layer_seconds +
              (slow_passes * most.training + slow_sampling * most.sampling) / flops +
              reading_seconds(config, spec, size, flops);
  return time;
}

std::string time_text(const config::RunConfig& config, const engine::models::DecoderSpec& spec,
                      const RunSize& size, const MachineRate& rate) {
  if (size.steps == 0) return labelled_line("time", "unknown") + overlap_text(config, size);
  if (!(rate.flops > 0))
    return labelled_line("time", "unknown: no FLOP/s could be measured") +
           overlap_text(config, size);
  const TimeRange time = time_of_run(config, spec, size, rate.flops);
  return labelled_line("time", cat(duration_text(time.least), " to ", duration_text(time.most),
                                   ", without evaluations and checkpoints")) +
         labelled_line("", cat(to_text(flops_per_parameter(config, size), 0),
                               " FLOPs per parameter and token, at")) +
         labelled_line("", rate.origin) + overlap_text(config, size);
}

}  // namespace troupe::launch::commands
