// The sampling settings of a generation request.
#pragma once

#include <cstdint>

#include "engine/generate/sampling_params.h"
#include "launch/serve/api/request_fields.h"
#include "launch/serve/api/served_model.h"

namespace troupe::launch::api {

/// Reads temperature, top_p, top_k, min_p, penalties, seed, stop, stop_token_ids, min_tokens,
/// ignore_eos, logit_bias and allowed_token_ids over the model's defaults. Without a seed, the
/// request gets one at random. Throws ApiFailure.
engine::generate::SamplingParams read_sampling(RequestFields& fields, const ServedModel& model);

}  // namespace troupe::launch::api
