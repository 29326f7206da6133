#include "launch/commands/explain/run_estimate.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "engine/base/text/text.h"
#include "engine/parallel/pipeline.h"
#include "launch/commands/explain/preview_text.h"
#include "launch/commands/explain/run_time.h"
#include "launch/memory/check_memory.h"
#include "launch/memory/memory.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/sampling.h"

namespace troupe::launch::commands {

namespace {

// Free bytes where the folder is or will be created; nullopt: unknown.
std::optional<std::uint64_t> free_space(std::filesystem::path folder) {
  std::error_code failed;
  folder = std::filesystem::absolute(folder, failed);
  while (!folder.empty() && !std::filesystem::exists(folder, failed) &&
         folder != folder.parent_path())
    folder = folder.parent_path();
  const auto space = std::filesystem::space(folder, failed);
  if (failed) return std::nullopt;
  return space.available;
}

/// What the ledger has on the disk (docs/reliability.md).
struct LedgerBytes {
  double samples = 0, rows = 0;
};
LedgerBytes ledger_bytes(const config::RunConfig& config, const RunSize& size) {
  // A token has an id, a log-probability, whether it was sampled, its text, and its mask.
  constexpr double of_sample = 400, row = 400;
  double of_token = 4 + 4 + 1 + 8;
  // Of many samples that come together; of one that comes by itself.
  const bool by_itself =
      config.async.free() || config.rollout.source == config::SampleSource::service;
  const double row_of_sample = by_itself ? 800 : 200;
  if (recipes::replays_sampling_mask(config))
    of_token += static_cast<double>(recipes::max_mask_bytes(config).token);
  const double steps = static_cast<double>(std::max<std::int64_t>(1, size.steps)),
               every = static_cast<double>(config.train.save_every),
               eta = config.async.on() ? static_cast<double>(config.async.eta) : 0,
               tokens = static_cast<double>(config.rollout.sampling.max_new_tokens);
  const double kept = every > 0 ? 3 * every + (eta + 1) * std::ceil(size.passes) : steps;
  return {size.samples * std::min(1.0, kept / steps) * (of_token * tokens + of_sample),
          row_of_sample * size.samples + row * steps};
}

std::uint64_t rounded(double bytes) {
  return static_cast<std::uint64_t>(std::min(bytes, 1e18));
}

/// `here`: the run is on this machine.
std::string disk_text(const config::RunConfig& config, const engine::models::DecoderSpec& spec,
                      const RunSize& size, bool here) {
  const std::int64_t steps = size.steps;
  // Weights and two moments, of the critic as well.
  const std::uint64_t each = 3 * memory::trained_bytes(config, spec) +
                             (recipes::roles_of(config).critic.needed
                                  ? 12 * static_cast<std::uint64_t>(spec.parameter_count())
                                  : 0);
  const auto every = config.train.save_every;
  const std::int64_t made = every > 0 && steps > 0 ? (steps + every - 1) / every : 1;
  // While one is saved, the others are still there.
  const std::int64_t kept =
      config.train.keep_last == 0 ? made : std::min<std::int64_t>(made, config.train.keep_last + 1);
  std::uint64_t needed = each * static_cast<std::uint64_t>(kept);
  std::string text = labelled_line("checkpoints", cat(memory::bytes_text(each), " each, up to ",
                                                      memory::bytes_text(needed), " for ", kept));
  if (config.ledger == config::LedgerUse::on && steps > 0) {
    const LedgerBytes ledger = ledger_bytes(config, size);
    text += labelled_line(
        "ledger", cat("up to ", memory::bytes_text(rounded(ledger.samples)), " of samples, about ",
                      memory::bytes_text(rounded(ledger.rows)), " of rows"));
    needed += rounded(ledger.samples + ledger.rows);
  }
  if (!here) return text;
  const auto room = free_space(config.output);
  text +=
      labelled_line("free disk space", room ? memory::bytes_text(*room) : std::string("unknown"));
  if (room && *room < needed)
    text +=
        "  Not enough disk space: lower train.keep_last, raise train.save_every, or choose "
        "another output.\n";
  return text;
}

/// Tokens of the largest of the run's updates, each of which has as many sequences drawn at random:
/// the mean and what the largest of that many normal variables is above it.
double largest_update(const RunSize& size) {
  const TokenCounts& all = size.most;
  const auto updates = static_cast<double>(size.steps);
  if (all.count == 0) return 0;
  const double mean = all.tokens / all.count,
               variance = std::max(0.0, all.squares / all.count - mean * mean),
               sequences = size.passes * all.count / updates;
  return sequences * mean + std::sqrt(2 * std::log(updates) * sequences * variance);
}

/// Of a run in one process, with micro-batches that are as full as those of its largest update.
/// With completions it is that of the longest ones.
std::string peak_text(const config::RunConfig& config, const engine::models::DecoderSpec& spec,
                      const RunSize& size) {
  if (size.steps == 0) return "";
  config::RunConfig filled = config;
  const double of_replica = std::ceil(largest_update(size) /
                                      static_cast<double>(config.parallel.dp * config.parallel.cp));
  filled.train.micro_batch_tokens = static_cast<std::int32_t>(
      std::clamp(of_replica, 1.0, static_cast<double>(config.train.micro_batch_tokens)));
  // The pages of the cache that its sequences use.
  if (size.most.longest > 0) filled.train.max_length = size.most.longest;
  return labelled_line("peak memory",
                       cat(size.samples > 0 ? "up to " : "about ",
                           memory::bytes_text(memory::memory_need(filled, spec, true).all),
                           ", with these batches, in one process"));
}

}  // namespace

std::string run_estimate(const config::RunConfig& config, const engine::models::DecoderSpec& spec,
                         const RunSize& size, const MachineOptions& machine) {
  const double tokens =
      size.passes * size.most.tokens / static_cast<double>(std::max<std::int64_t>(1, size.steps));
  return size_text(config, size) +
         time_text(config, spec, size, size.steps > 0 ? rate_of(machine, config) : MachineRate()) +
         peak_text(config, spec, size) + pipeline_text(config, tokens) +
         disk_text(config, spec, size, !machine.is_other());
}

std::string pipeline_text(const config::RunConfig& config, double tokens) {
  const config::ParallelConfig& p = config.parallel;
  if (p.pp == 1) return "";
  const double of_replica = tokens / static_cast<double>(p.dp),
               parts = std::ceil(of_replica / static_cast<double>(config.train.micro_batch_tokens));
  const auto count = static_cast<int>(std::clamp(parts, 1.0, 1e6));
  const double waits = engine::parallel::bubble(p.pp, count, p.vpp);
  return labelled_line("pipeline", cat("a stage waits for about ", to_text(100 * waits, 1),
                                       " % of the time,")) +
         labelled_line("", cat("(pp - 1) / (m vpp + pp - 1) with m = ", count,
                               count == 1 ? " micro-batch" : " micro-batches", " of an update"));
}

}  // namespace troupe::launch::commands
