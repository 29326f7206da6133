// The fields of a request that constrain its output: response_format, structured_outputs,
// guided_json, guided_regex, guided_choice and guided_grammar, and the names of llama.cpp and
// SGLang.
#pragma once

#include <optional>

#include "launch/serve/api/output_constraints.h"
#include "launch/serve/api/request_fields.h"

namespace troupe::launch::serve::api {

/// Nothing when the output is free. Throws ApiFailure, also for more than one constraint.
std::optional<ConstraintText> read_constraint(RequestFields& fields);

}  // namespace troupe::launch::serve::api
