#include "launch/run/settings.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "launch/config/values.h"
#include "launch/recipes/experts.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/model_spec.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/sampling.h"
#include "launch/recipes/selection.h"

namespace troupe::launch::run {
engine::generate::GeneratorConfig generator_settings(const config::RunConfig& config,
                                                     const engine::models::DecoderSpec& spec) {
  engine::generate::GeneratorConfig out = config.rollout.generator;
  out.pages =
      static_cast<std::int32_t>((config.rollout.cache_tokens + out.page_size - 1) / out.page_size);
  out.longest = config.train.max_length;
  out.precision = config.train.dtype;
  out.eos_ids = spec.eos_ids;
  return out;
}

engine::nn::ValueTypes value_types(const config::RunConfig& config) {
  return recipes::adapts(config) ? engine::nn::ValueTypes{} : config.train.types();
}

engine::train::TrainerOptions trainer_settings(const config::RunConfig& config) {
  engine::train::TrainerOptions out = config.train;
  out.optimizer.seed = static_cast<std::uint64_t>(config.train.seed);
  out.shard_optimizer = config.parallel.zero > 0;
  out.overlap = config.parallel.overlap;
  out.experts = recipes::expert_settings(config);
  return out;
}

engine::train::ScoringOptions scoring_settings(const config::RunConfig& config) {
  return {.precision = config.train.dtype, .micro_batch_tokens = config.train.micro_batch_tokens};
}

Result<std::string> limit_max_length(config::RunConfig& config) {
  const auto spec = recipes::spec_of(config, config.model);
  RETURN_IF_ERROR(spec);
  const std::int64_t given = config.train.max_length;
  if (given <= spec->max_positions) return "";
  config.train.max_length = spec->max_positions;
  return cat("train.max_length = ", given, ": the model has ", spec->max_positions,
             " positions; the run uses ", spec->max_positions);
}

std::int64_t max_length(const config::RunConfig& config, const engine::models::DecoderSpec& spec) {
  return config.train.max_length > 0 ? std::min(config.train.max_length, spec.max_positions)
                                     : spec.max_positions;
}

Result<engine::data::DataOptions> data_settings(const config::RunConfig& config,
                                                const engine::models::DecoderSpec& spec) {
  engine::data::DataOptions out = config.data;
  out.reading.documents = recipes::recipe_of(config).name == algorithms::PretrainConfig::name;
  out.selection.seed = static_cast<std::uint64_t>(config.train.seed);
  out.encode.max_length = max_length(config, spec);
  out.encode.train_on_prompt = !config.sft.mask_prompt;
  if (recipes::roles_of(config).rollout.needed) {
    // Other programs sample as many tokens as they like, at least one.
    const bool made_here = config.rollout.source == config::SampleSource::engine;
    out.encode.max_length -= made_here ? config.rollout.sampling.max_new_tokens : 1;
    out.check_prompt = recipes::prompt_check(config);
  }
  if (out.encode.max_length < 1)
    return fail(Errc::usage,
                cat("rollout.max_new_tokens ", config.rollout.sampling.max_new_tokens,
                    " leaves no room for a prompt: sequences have at most ",
                    max_length(config, spec), " tokens (train.max_length, or the model's)"));
  return out;
}

engine::data::LoaderOptions loader_settings(const config::RunConfig& config,
                                            std::int64_t batches_of) {
  return {.batch_size = config.train.batch_size * batches_of,
          .epochs = config.train.steps > 0 ? 0.0 : config.train.epochs,
          .shuffle = config.data.shuffle,
          .seed = static_cast<std::uint64_t>(config.train.seed),
          .stream_rows = config.data.stream ? config.data.shuffle_buffer : 0,
          .last_batch = config.data.last_batch};
}

namespace {

/// Growing batches have fewer samples than full ones, which a schedule may count.
std::function<double(std::int64_t)> place_of(const config::TrainConfig& train) {
  if (train.schedule_unit == config::ScheduleUnit::steps || train.batch_rampup.start == 0)
    return {};
  return [rampup = train.batch_rampup, full = train.batch_size](std::int64_t steps) {
    return static_cast<double>(rampup.consumed(steps, full)) / static_cast<double>(full);
  };
}

}  // namespace

Result<algorithms::TrainingPlan> rate_settings(const config::RunConfig& config,
                                               std::int64_t steps) {
  auto schedule =
      engine::optim::Schedule::create(config.train.schedule, config.train.schedule_options(steps));
  if (!schedule) return fail(schedule.error().code, cat("train.schedule: ", schedule.error().what));
  return algorithms::TrainingPlan{.steps = steps,
                                  .learning_rate = config.train.learning_rate,
                                  .schedule = *schedule,
                                  .place = place_of(config.train)};
}

Result<algorithms::TrainingPlan> plan_settings(const config::RunConfig& config,
                                               std::int64_t batches, std::int64_t updates,
                                               std::int64_t done) {
  // A mix whose sources are all limited may be exhausted before train.steps.
  const std::int64_t given = config.train.steps, made = batches * updates;
  const std::int64_t steps = given > 0 && made > 0 ? std::min(given, made)
                             : given > 0           ? given
                                                   : made;
  auto plan = rate_settings(config, steps);
  RETURN_IF_ERROR(plan);
  auto selection = recipes::model_selection(config);
  RETURN_IF_ERROR(selection);
  plan->done = done;
  plan->save_every = config.train.save_every;
  plan->average = config.train.average;
  plan->selection = std::move(*selection);
  plan->resumable = !config.train.save_only_model;
  return plan;
}

}  // namespace troupe::launch::run
