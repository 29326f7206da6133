// The settings of an imported pretraining run of Megatron-LM or MindSpeed-LLM that are not copied.
#pragma once

#include <string_view>

#include "launch/tools/migration/settings.h"

namespace troupe::launch::tools::migration {

/// Converts a value by one of the converters blend (--data-path), rampup (--rampup-batch-size),
/// virtual (--num-layers-per-virtual-pipeline-stage) and eval_iters. False for another converter.
bool convert_pretraining(ImportSettings& settings, std::string_view converter,
                         const config::YamlNode& value);
/// An evaluation of 0 batches is none.
void finish_pretraining(ImportSettings& settings);

}  // namespace troupe::launch::tools::migration
