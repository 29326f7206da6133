// Settings of sampling and beam search that the command line or a line of `troupe generate`
// carries.
#pragma once

#include "engine/base/json.h"
#include "engine/generate/sampling_params.h"

namespace troupe::launch {

/// Takes every member of `object` that engine/generate/sampling_params_json.h knows; others are not
/// looked at. A temperature or a filter turns greedy off, unless do_sample stands beside it.
/// Errc::bad_input.
Result<> read_settings(const Json& object, engine::generate::SamplingParams& sampling);

}  // namespace troupe::launch
