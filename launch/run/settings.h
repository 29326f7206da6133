// Options of the libraries from the run's configuration, as pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/training/plan.h"
#include "engine/data/loader/dataset.h"
#include "engine/data/loader/loader.h"
#include "engine/generate/generator.h"
#include "engine/models/spec.h"
#include "engine/train/trainer.h"
#include "launch/config/run_config.h"
#include "launch/recipes/role_grids.h"

namespace troupe::launch::run {

engine::generate::GeneratorConfig generator_settings(const config::RunConfig& config,
                                                     const engine::models::DecoderSpec& spec);
/// How the trained model is stored, from train.gradients.
engine::nn::ValueTypes value_types(const config::RunConfig& config);
engine::train::TrainerOptions trainer_settings(const config::RunConfig& config);
engine::train::ScoringOptions scoring_settings(const config::RunConfig& config);

/// Lowers train.max_length to the limit of the model, if it is above. Returns the warning, or "".
/// Errors of the model's configuration.
Result<std::string> limit_max_length(config::RunConfig& config);

/// Longest sequence in tokens: train.max_length, or the model's.
std::int64_t max_length(const config::RunConfig& config, const engine::models::DecoderSpec& spec);
/// Errc::usage if rollout.max_new_tokens leaves no room for a prompt.
Result<engine::data::DataOptions> data_settings(const config::RunConfig& config,
                                                const engine::models::DecoderSpec& spec);
/// Options for batches of `batches_of` times train.batch_size rows.
engine::data::LoaderOptions loader_settings(const config::RunConfig& config,
                                            std::int64_t batches_of);

/// The part of a plan that determines learning rates. Errc::usage for a schedule of other lengths.
Result<algorithms::TrainingPlan> rate_settings(const config::RunConfig& config, std::int64_t steps);

/// `batches`: batches in one run over the loader (0: unlimited); `updates`: optimizer steps per
/// batch (grpo: epochs * minibatches). Errc::usage if the length of the run is not set.
Result<algorithms::TrainingPlan> plan_settings(const config::RunConfig& config,
                                               std::int64_t batches, std::int64_t updates,
                                               std::int64_t done);

}  // namespace troupe::launch::run
