#include "launch/commands/explain/run_estimate.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "engine/base/text.h"
#include "engine/data/loader/sampler.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/ops/roofline.h"
#include "engine/parallel/pipeline.h"
#include "launch/commands/explain/preview_text.h"
#include "launch/commands/memory.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/recipes.h"
#include "launch/run/settings.h"

namespace troupe::launch {

namespace {

// The size of a run. Tokens are those of the examples; of prompts with completions, at most.
struct RunSize {
  std::int64_t steps = 0;
  double examples = 0;  // that the run reads, counted each time
  double epochs = 0;    // 0: unknown
  double sequence_tokens = 0;
  double passes = 1;   // over each sequence in training
  bool about = false;  // scaled from a part of the rows
};

double ratio_of(std::int64_t sum, std::int64_t count) {
  return static_cast<double>(sum) / static_cast<double>(std::max<std::int64_t>(1, count));
}

double tokens_per_example(const RunConfig& config, const DataPreview& preview, const RowUse& use) {
  const double read = ratio_of(preview.tokens, preview.examples);
  if (use.samples == 0) return read;
  return static_cast<double>(use.samples) *
         (read + static_cast<double>(config.rollout.sampling.max_new_tokens));
}

Result<RunSize> size_of_run(const RunConfig& config, const DataPreview& preview) {
  const RowUse use = recipe_of(config).row_use(config);
  const auto loader = loader_settings(config, use.batches);
  std::int64_t all = 0;
  for (const auto& source : preview.sources) all += static_cast<std::int64_t>(source.size);
  const bool endless = config.data.stream || !preview.rows;
  const engine::data::Sampler sampler(preview.sources, loader);
  const auto batches = endless ? 0 : sampler.batches();
  if (batches == 0 && config.train.steps == 0) return RunSize{.about = true};
  const auto plan = plan_settings(config, batches, use.updates, 0);
  RETURN_IF_ERROR(plan);
  RunSize out{.steps = plan->steps, .about = !preview.complete};
  out.passes = ratio_of(use.updates, use.batches);
  out.examples = ratio_of(plan->steps, use.updates) * static_cast<double>(loader.batch_size);
  if (config.train.steps == 0)
    out.examples = std::min(out.examples, config.train.epochs * static_cast<double>(all));
  if (preview.rows) out.epochs = out.examples / static_cast<double>(std::max<std::int64_t>(1, all));
  out.sequence_tokens = out.examples * tokens_per_example(config, preview, use);
  return out;
}

std::string about(const RunSize& size) {
  return size.about ? "about " : "";
}

std::string whole(double value) {
  return grouped(std::llround(value));
}

std::string size_text(const RunConfig& config, const RunSize& size) {
  if (size.steps == 0)
    return labelled_line("steps", "unknown: the rows were not counted; train.steps sets them");
  std::string steps =
      cat(about(size), grouped(size.steps), ", batch size ", config.train.batch_size);
  if (size.epochs > 0)
    steps += cat(", ", to_text(std::round(100 * size.epochs) / 100),
                 size.epochs == 1 ? " epoch" : " epochs");
  std::string text = labelled_line("steps", steps);
  const bool samples = recipe_of(config).row_use(config).samples > 0;
  text +=
      labelled_line("tokens", cat(samples ? "at most " : about(size), whole(size.sequence_tokens),
                                  samples ? " of prompts and completions" : " in the run"));
  const auto warmup = config.train.warmup_of(size.steps);
  if (warmup >= size.steps)
    text += labelled_line("warmup", cat(warmup,
                                        " steps, longer than the run: the learning rate "
                                        "does not reach its peak"));
  return text;
}

// FLOPs for each parameter and token: 6 of training (4 of an adapter, as the model's weights have
// no gradient), 2 of each pass that only scores or samples.
double flops_per_parameter(const RunConfig& config, const RunSize& size) {
  const RolesNeeded roles = roles_of(config);
  double flops = (adapts(config) ? 4 : 6) * size.passes;
  if (roles.reference.needed) flops += 2;
  if (roles.rollout.needed) flops += 2;
  if (roles.critic.needed) flops += 2 + 6 * size.passes;
  return flops;
}

std::string time_text(const RunConfig& config, const engine::models::DecoderSpec& spec,
                      const RunSize& size) {
  if (size.steps == 0) return labelled_line("time", "unknown");
  const bool bf16 = config.train.dtype == engine::ops::Precision::bf16;
  const auto device = engine::ops::make_cpu_device(
      {.threads = static_cast<int>(config.train.threads), .pin_threads = false});
  const auto ceiling = engine::ops::measure_ceiling(*device, bf16);
  const double rate = bf16 ? ceiling.bf16_flops : ceiling.f32_flops;
  if (!(rate > 0)) return labelled_line("time", "unknown: no FLOP/s could be measured");
  const double factor = flops_per_parameter(config, size);
  // The rows of an embedding that is no head are looked up, not multiplied.
  const auto multiplied = spec.parameter_count() - (spec.tied ? 0 : spec.vocabulary * spec.width);
  const double flops = factor * static_cast<double>(multiplied) * size.sequence_tokens;
  return labelled_line("time", cat("at least ", duration_text(flops / rate))) +
         labelled_line("", cat(to_text(factor, 0), " FLOPs per parameter and token, at ",
                               to_text(rate / 1e9, 0), " GFLOP/s,")) +
         labelled_line("", cat("measured now with a matrix product in ", bf16 ? "bf16" : "f32"));
}

// What async.mode lets overlap, and the gain if both sides have processors of their own: the sum of
// their times divided by the longer one.
std::string overlap_text(const RunConfig& config, const RunSize& size) {
  const char* label = "overlap";
  if (!roles_of(config).rollout.needed) return "";
  if (!config.async.on()) return labelled_line(label, "none: async.mode is off");
  if (config.async.eta == 0) return labelled_line(label, "none: async.eta is 0");
  const double all = flops_per_parameter(config, size), own = 2;
  const bool lanes = config.rollout.threads > 0 && config.train.threads > 0;
  const double threads = lanes ? static_cast<double>(config.train.threads) /
                                     static_cast<double>(config.rollout.threads)
                               : 1;
  const double sampling = own * threads, training = all - own;
  const double gain = (sampling + training) / std::max(sampling, training);
  const double share = 100 * sampling / (sampling + training);
  std::string text =
      labelled_line(label, "sampling and rewards of later batches, with training") +
      labelled_line("", cat(to_text(share, 0), " % and ", to_text(100 - share, 0),
                            " % of the FLOPs: at most ", to_text(gain, 2), " times as fast"));
  if (config.rollout.threads == 0)
    text += labelled_line("", "in groups of processes; not in one: rollout.threads is 0");
  return text;
}

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

std::string disk_text(const RunConfig& config, const engine::models::DecoderSpec& spec,
                      std::int64_t steps) {
  // Weights and two moments, of the critic as well.
  const std::uint64_t each =
      3 * trained_bytes(config, spec) +
      (roles_of(config).critic.needed ? 12 * static_cast<std::uint64_t>(spec.parameter_count())
                                      : 0);
  const auto every = config.train.save_every;
  const std::int64_t made = every > 0 && steps > 0 ? (steps + every - 1) / every : 1;
  // While one is saved, the others are still there.
  const std::int64_t kept =
      config.train.keep_last == 0 ? made : std::min(made, config.train.keep_last + 1);
  const std::uint64_t needed = each * static_cast<std::uint64_t>(kept);
  const auto room = free_space(config.output);
  std::string text = labelled_line(
      "checkpoints", cat(bytes_text(each), " each, up to ", bytes_text(needed), " for ", kept));
  text += labelled_line("free disk space", room ? bytes_text(*room) : std::string("unknown"));
  if (room && *room < needed)
    text +=
        "  Not enough disk space: lower train.keep_last, raise train.save_every, or choose "
        "another output.\n";
  return text;
}

}  // namespace

Result<std::string> run_estimate(const RunConfig& config, const engine::models::DecoderSpec& spec,
                                 const DataPreview& preview) {
  const auto size = size_of_run(config, preview);
  RETURN_IF_ERROR(size);
  const double tokens = size->passes * size->sequence_tokens /
                        static_cast<double>(std::max<std::int64_t>(1, size->steps));
  return size_text(config, *size) + time_text(config, spec, *size) + overlap_text(config, *size) +
         pipeline_text(config, tokens) + disk_text(config, spec, size->steps);
}

std::string pipeline_text(const RunConfig& config, double tokens) {
  const ParallelConfig& p = config.parallel;
  if (p.pp == 1) return "";
  const double of_replica = tokens / static_cast<double>(p.dp),
               parts = std::ceil(of_replica / static_cast<double>(config.train.micro_batch_tokens));
  const auto count = static_cast<int>(std::clamp(parts, 1.0, 1e6));
  const double waits =
      engine::parallel::bubble(static_cast<int>(p.pp), count, static_cast<int>(p.vpp));
  return labelled_line("pipeline", cat("a stage waits for about ", to_text(100 * waits, 1),
                                       " % of the time,")) +
         labelled_line("", cat("(pp - 1) / (m vpp + pp - 1) with m = ", count,
                               count == 1 ? " micro-batch" : " micro-batches", " of an update"));
}

}  // namespace troupe::launch
