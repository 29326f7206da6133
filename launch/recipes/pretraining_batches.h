// The batches of pretraining: from token files in Megatron's order, or from rows of text.
#pragma once

#include <memory>

#include "algorithms/losses/loss_average.h"
#include "algorithms/pretrain.h"
#include "engine/data/megatron/pretraining_data.h"
#include "launch/recipes/run_context.h"

namespace troupe::launch::recipes {

/// Token datasets of `config` and how samples are cut from them; no numbers of samples.
Result<engine::data::megatron::PretrainingOptions> token_file_options(
    const config::RunConfig& config, std::int64_t sequence_length);

/// Appends a sample as sequences: one, or one for each document of it where positions restart. A
/// sequence ends with its last label, which is only predicted.
void append_sample(const engine::data::megatron::PretrainingSample& sample, std::uint64_t id,
                   engine::data::Experience& out);

/// Samples of a split, from sample `consumed` on. next() throws Failure (Errc::bad_input) for a
/// token beyond the vocabulary.
std::unique_ptr<algorithms::PretrainingBatches> token_batches(
    engine::data::megatron::PretrainingSplit split, std::int64_t consumed, std::int64_t vocabulary,
    algorithms::LossAverage average = {});

/// The rows of a loader.
std::unique_ptr<algorithms::PretrainingBatches> row_batches(
    engine::data::Loader<engine::data::SftExample> rows, algorithms::LossAverage average = {});

}  // namespace troupe::launch::recipes
