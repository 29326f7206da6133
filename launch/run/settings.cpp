#include "launch/run/settings.h"

#include <algorithm>

#include "engine/base/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "launch/config/values.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/model_spec.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/sampling.h"
#include "launch/recipes/selection.h"

namespace troupe::launch::run {
namespace {

bool recomputes(const config::RunConfig& config, config::Recompute what) {
  const auto& all = config.train.recompute;
  return std::ranges::find(all, what) != all.end();
}

}  // namespace

engine::generate::GeneratorConfig generator_settings(const config::RunConfig& config,
                                                     const engine::models::DecoderSpec& spec) {
  engine::generate::GeneratorConfig out;
  out.max_sequences = static_cast<std::int32_t>(config.rollout.max_sequences);
  out.pages =
      static_cast<std::int32_t>((config.rollout.cache_tokens + out.page_size - 1) / out.page_size);
  out.longest = config.train.max_length;
  out.precision = config.train.dtype;
  out.weights = config.rollout.weights;
  out.lookup = static_cast<std::int32_t>(config.rollout.lookup);
  out.eos_ids = spec.eos_ids;
  return out;
}

std::vector<std::int64_t> layers_of_stages(const config::RunConfig& config) {
  return {config.parallel.layers.begin(), config.parallel.layers.end()};
}

std::vector<std::int64_t> noop_layers(const config::RunConfig& config) {
  return {config.parallel.noop_layers.begin(), config.parallel.noop_layers.end()};
}

engine::nn::Recomputed recomputed_settings(const config::RunConfig& config) {
  return {.layers = recomputes(config, config::Recompute::full),
          .attention = recomputes(config, config::Recompute::attention),
          .activation = recomputes(config, config::Recompute::activation),
          .norm = recomputes(config, config::Recompute::norm),
          .method = config.train.recompute_method,
          .count = config.train.recompute_layers,
          .in_advance = config.train.recompute_in_advance};
}

engine::nn::Storage storage_settings(const config::RunConfig& config) {
  if (recipes::adapts(config)) return {};
  return {.values = config.train.weights == config::WeightType::bf16 ? DType::bf16 : DType::f32,
          .grads = config.train.gradients == config::StateType::bf16 ? DType::bf16 : DType::f32};
}

engine::train::TrainerOptions trainer_settings(const config::RunConfig& config) {
  engine::train::TrainerOptions out;
  out.precision = config.train.dtype;
  out.micro_batch_tokens = static_cast<std::int32_t>(config.train.micro_batch_tokens);
  out.optimizer = {config.train.betas[0], config.train.betas[1], config.train.eps,
                   config.train.weight_decay, config.train.max_grad_norm};
  out.optimizer.bf16_weights = config.train.weights == config::WeightType::bf16;
  out.optimizer.seed = static_cast<std::uint64_t>(config.train.seed);
  out.optimizer.ema_decay = config.train.ema_decay;
  out.bf16_moments = config.train.moments == config::StateType::bf16;
  out.loss_scale = config.train.loss_scale;
  out.recomputed = recomputed_settings(config);
  out.share_prefixes = config.train.share_prefixes;
  out.attention_dropout = config.train.attention_dropout;
  out.hidden_dropout = config.train.hidden_dropout;
  out.offload = config.train.offload;
  out.shard_optimizer = config.parallel.zero > 0;
  out.overlap = config.parallel.overlap;
  return out;
}

engine::train::ScoringOptions scoring_settings(const config::RunConfig& config) {
  return {.precision = config.train.dtype,
          .micro_batch_tokens = static_cast<std::int32_t>(config.train.micro_batch_tokens)};
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
                                                const engine::models::DecoderSpec& spec,
                                                const std::vector<std::string>& paths) {
  engine::data::DataOptions out;
  out.paths = paths;
  out.layout = config.data.format;
  out.columns = config.data.columns;
  out.tags = config.data.tags;
  out.system = config.data.system;
  out.reading = {config.data.sample_by, config.data.separator, config.data.column_names,
                 recipes::recipe_of(config).name == algorithms::PretrainConfig::name};
  for (const auto& source : config.data.mix)
    out.mix.push_back(
        {source.path, source.weight, source.epochs, source.format, source.columns, source.system});
  out.chat = config.data.chat;
  out.bad_row_limit = config.data.max_bad_rows;
  out.selection = {.first_rows = config.data.max_samples,
                   .split = config.data.split,
                   .seed = static_cast<std::uint64_t>(config.train.seed)};
  out.encode.chunk = config.data.chunk;
  out.encode.begin_token = config.data.begin_token;
  out.encode.answer_start = config.data.answer_start;
  out.encode.end_token = config.data.end_token;
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

Result<algorithms::Plan> plan_settings(const config::RunConfig& config, std::int64_t batches,
                                       std::int64_t updates, std::int64_t done) {
  // A mix whose sources are all limited may be exhausted before train.steps.
  const std::int64_t given = config.train.steps, made = batches * updates;
  const std::int64_t steps = given > 0 && made > 0 ? std::min(given, made)
                             : given > 0           ? given
                                                   : made;
  auto schedule =
      engine::optim::Schedule::create(config.train.schedule, config.train.schedule_options(steps));
  if (!schedule) return fail(schedule.error().code, cat("train.schedule: ", schedule.error().what));
  auto selection = recipes::model_selection(config);
  RETURN_IF_ERROR(selection);
  return algorithms::Plan{.steps = steps,
                          .done = done,
                          .save_every = config.train.save_every,
                          .learning_rate = config.train.learning_rate,
                          .schedule = *schedule,
                          .selection = std::move(*selection),
                          .resumable = !config.train.save_only_model};
}

}  // namespace troupe::launch::run
