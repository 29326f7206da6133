// The conversions that a table names with @, and what follows from several settings together.
#pragma once

#include <string_view>

#include "launch/tools/migration/settings.h"

namespace troupe::launch::tools::migration {

/// Converts a value by the row's converter, and reports it.
void convert_value(ImportSettings& settings, const tables::ToolKey& row,
                   const config::YamlNode& value);
/// Batch sizes, betas, the tool's preset, and a reward, after all settings.
void finish(ImportSettings& settings);

// LLaMA-Factory's register of data sets, dataset_info.json.

/// Converts a value by one of the converters datasets (names of data sets, which become files and
/// columns), dataset_dir, map_keys, mix_strategy and interleave_probs. False for another converter.
bool convert_dataset(ImportSettings& settings, std::string_view converter,
                     const config::YamlNode& value);

// The settings of an imported pretraining run of Megatron-LM or MindSpeed-LLM that are not copied.

/// Converts a value by one of the converters blend (--data-path), rampup (--rampup-batch-size),
/// virtual (--num-layers-per-virtual-pipeline-stage), eval_iters, recompute, ema
/// (--optimizer-selection and --ema-decay) and warmup_fraction. False for another converter.
bool convert_pretraining(ImportSettings& settings, const tables::ToolKey& row,
                         const config::YamlNode& value);
/// An evaluation of 0 batches is none.
void finish_pretraining(ImportSettings& settings);

// The reward of an imported run: the functions of other tools that are rules here.

/// Converts a value by one of the converters rewards, reward_weights and reward_model. False for
/// another converter.
bool convert_reward(ImportSettings& settings, std::string_view converter,
                    const config::YamlNode& value);
/// Writes the rules; a method that needs a reward and has none gets one, with a note.
void finish_reward(ImportSettings& settings);

}  // namespace troupe::launch::tools::migration
