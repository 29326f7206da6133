// From the run's configuration to the settings of the libraries: pure functions, so that a test can
// look at each.
#pragma once

#include "algorithms/plan.h"
#include "engine/data/loader/dataset.h"
#include "engine/data/loader/loader.h"
#include "engine/generate/generator.h"
#include "engine/models/spec.h"
#include "engine/parallel/grid.h"
#include "engine/train/trainer.h"
#include "launch/config/run_config.h"

namespace troupe::launch {

/// "f32" or "bf16" of --dtype and train.dtype. Errc::usage.
Result<engine::ops::Precision> precision_of(const std::string& dtype);

engine::generate::GeneratorConfig generator_settings(const RunConfig& config,
                                                     const engine::models::DecoderSpec& spec);
/// parallel.*: how the ranks of the policy share it.
engine::parallel::Grid policy_grid(const RunConfig& config);
/// train.recompute.
engine::nn::Recomputed recomputed_settings(const RunConfig& config);
engine::train::TrainerOptions trainer_settings(const RunConfig& config);
engine::train::ScoringOptions scoring_settings(const RunConfig& config);

/// Tokens of a sequence: train.max_length, or the model's.
std::int64_t max_length(const RunConfig& config, const engine::models::DecoderSpec& spec);
/// Errc::usage for an unknown data.format.
Result<engine::data::DataOptions> data_settings(const RunConfig& config,
                                                const engine::models::DecoderSpec& spec,
                                                const std::vector<std::string>& paths);
/// `updates`: optimizer steps that share one batch (1, or grpo's epochs * minibatches). Batches
/// hold `batches_of` times train.batch_size.
engine::data::LoaderOptions loader_settings(const RunConfig& config, std::int64_t batches_of);

/// `batches`: what one run over the loader gives (0: without end). Errc::usage when nothing says
/// how long the run is.
Result<algorithms::Plan> plan_settings(const RunConfig& config, std::int64_t batches,
                                       std::int64_t updates, std::int64_t done);

}  // namespace troupe::launch
