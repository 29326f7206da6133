#include "launch/run/settings.h"

#include <algorithm>

#include "engine/base/text.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/sampling/sampling.h"

namespace troupe::launch {
namespace {

/// The configuration is validated: its dtype is known.
engine::ops::Precision precision_of_run(const RunConfig& config) {
  return precision_of(config.train.dtype).value();
}

Result<engine::data::Layout> layout_of(const std::string& format) {
  return format == "auto" ? Result<engine::data::Layout>(engine::data::Layout::automatic)
                          : engine::data::layout_from(format);
}

}  // namespace

Result<engine::ops::Precision> precision_of(const std::string& dtype) {
  if (dtype == "f32" || dtype == "float32") return engine::ops::Precision::f32;
  if (dtype == "bf16" || dtype == "bfloat16") return engine::ops::Precision::bf16;
  return fail(Errc::usage, cat("--dtype ", quote(dtype), ": expected f32 or bf16"));
}

engine::generate::GeneratorConfig generator_settings(const RunConfig& config,
                                                     const engine::models::DecoderSpec& spec) {
  engine::generate::GeneratorConfig out;
  out.max_sequences = static_cast<std::int32_t>(config.rollout.max_sequences);
  out.pages =
      static_cast<std::int32_t>((config.rollout.cache_tokens + out.page_size - 1) / out.page_size);
  out.longest = config.train.max_length;
  out.precision = precision_of_run(config);
  if (draws_in_8_bits(config)) out.weights = engine::models::WeightFormat::int8;
  out.eos_ids = spec.eos_ids;
  return out;
}

engine::parallel::Grid policy_grid(const RunConfig& config) {
  return {.dp = static_cast<int>(config.parallel.dp), .tp = static_cast<int>(config.parallel.tp)};
}

engine::nn::Recomputed recomputed_settings(const RunConfig& config) {
  const auto& modules = config.train.recompute;
  const auto has = [&](std::string_view name) {
    return std::ranges::find(modules, name) != modules.end();
  };
  return {has("full"), has("attention"), has("activation"), has("norm")};
}

engine::train::TrainerOptions trainer_settings(const RunConfig& config) {
  engine::train::TrainerOptions out;
  out.precision = precision_of_run(config);
  out.micro_batch_tokens = static_cast<std::int32_t>(config.train.micro_batch_tokens);
  out.optimizer = {config.train.betas[0], config.train.betas[1], config.train.eps,
                   config.train.weight_decay, config.train.max_grad_norm};
  if (config.train.stochastic_rounding)
    out.optimizer.rounding_seed = static_cast<std::uint64_t>(config.train.seed);
  out.recomputed = recomputed_settings(config);
  out.share_prefixes = config.train.share_prefixes;
  return out;
}

engine::train::ScoringOptions scoring_settings(const RunConfig& config) {
  return {.precision = precision_of_run(config),
          .micro_batch_tokens = static_cast<std::int32_t>(config.train.micro_batch_tokens)};
}

std::int64_t max_length(const RunConfig& config, const engine::models::DecoderSpec& spec) {
  return config.train.max_length > 0 ? std::min(config.train.max_length, spec.max_positions)
                                     : spec.max_positions;
}

Result<engine::data::DataOptions> data_settings(const RunConfig& config,
                                                const engine::models::DecoderSpec& spec,
                                                const std::vector<std::string>& paths) {
  engine::data::DataOptions out;
  out.paths = paths;
  const auto layout = layout_of(config.data.format);
  if (!layout) return fail(layout.error().code, cat("data.format: ", layout.error().what));
  out.layout = *layout;
  out.columns = config.data.columns;
  out.tags = config.data.tags;
  const auto by = engine::data::sample_by_from(config.data.sample_by);
  if (!by) return fail(by.error().code, cat("data.sample_by: ", by.error().what));
  out.reading = {*by, config.data.separator, config.data.column_names};
  for (const auto& source : config.data.mix) {
    const auto of_source = layout_of(source.format);
    if (!of_source)
      return fail(of_source.error().code, cat("data.mix: format: ", of_source.error().what));
    out.mix.push_back({source.path, source.weight, source.epochs, *of_source, source.columns});
  }
  using engine::data::ChatUse;
  out.chat = config.data.chat == "always"  ? ChatUse::always
             : config.data.chat == "never" ? ChatUse::never
                                           : ChatUse::automatic;
  out.bad_row_limit = config.data.max_bad_rows;
  out.encode.max_length = max_length(config, spec);
  out.encode.train_on_prompt = !config.sft.mask_prompt;
  if (roles_of(config).rollout.needed) out.encode.max_length -= config.rollout.max_new_tokens;
  if (out.encode.max_length < 1)
    return fail(Errc::usage,
                cat("rollout.max_new_tokens ", config.rollout.max_new_tokens,
                    " leaves no room for a prompt: sequences have at most ",
                    max_length(config, spec), " tokens (train.max_length, or the model's)"));
  return out;
}

engine::data::LoaderOptions loader_settings(const RunConfig& config, std::int64_t batches_of) {
  return {.batch_size = config.train.batch_size * batches_of,
          .epochs = config.train.steps > 0 ? 0 : config.train.epochs,
          .shuffle = config.data.shuffle,
          .seed = static_cast<std::uint64_t>(config.train.seed),
          .stream_rows = config.data.stream ? config.data.shuffle_buffer : 0};
}

Result<algorithms::Plan> plan_settings(const RunConfig& config, std::int64_t batches,
                                       std::int64_t updates, std::int64_t done) {
  // A mix whose sources are all limited may be exhausted before train.steps.
  const std::int64_t given = config.train.steps, made = batches * updates;
  const std::int64_t steps = given > 0 && made > 0 ? std::min(given, made)
                             : given > 0           ? given
                                                   : made;
  const engine::optim::ScheduleOptions options{.total_steps = steps,
                                               .warmup_steps = config.train.warmup_steps,
                                               .min_ratio = config.train.min_lr_ratio,
                                               .decay_steps = config.train.decay_steps};
  auto schedule = engine::optim::Schedule::create(config.train.schedule, options);
  if (!schedule) return fail(schedule.error().code, cat("train.schedule: ", schedule.error().what));
  return algorithms::Plan{steps, done, config.train.save_every, config.train.learning_rate,
                          *schedule};
}

}  // namespace troupe::launch
