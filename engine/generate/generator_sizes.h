// The sizes of a generator from its configuration.
#pragma once

#include "engine/base/errors/error.h"
#include "engine/generate/generator.h"
#include "engine/generate/scheduler.h"

namespace troupe::engine::generate {

/// Fills in the sizes that are 0 and validates the others, and the drafts. Errc::usage.
Result<SchedulerConfig> sizes_of(const GeneratorConfig& config, const models::DecoderSpec& spec);

}  // namespace troupe::engine::generate
