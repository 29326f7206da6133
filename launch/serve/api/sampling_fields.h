// The sampling settings of a generation request.
#pragma once

#include <memory>

#include "engine/constraints/token_table.h"
#include "engine/generate/sampling_params.h"
#include "launch/serve/api/request_fields.h"
#include "launch/serve/api/served_model.h"

namespace troupe::launch::serve::api {

/// Reads the fields of SamplingParams (their names in requests: sampling_names.h), seed, stop,
/// stop_token_ids and logit_bias over the model's defaults. Without a seed, the request gets one at
/// random. Throws ApiFailure.
engine::generate::SamplingParams read_sampling(RequestFields& fields, const ServedModel& model);

/// allowed_token_ids; nullptr where it is absent. Throws ApiFailure.
std::shared_ptr<const engine::constraints::TokenMask> read_allowed(RequestFields& fields,
                                                                   const ServedModel& model);

}  // namespace troupe::launch::serve::api
