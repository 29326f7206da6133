// The fields of sampling and constraints, which mean the same at every endpoint that generates
// text.
#pragma once

#include <span>

#include "launch/serve/api/fields/field_table.h"

namespace troupe::launch::serve::api {

/// Those that act.
std::span<const FieldRow> sampling_rows();
/// Those that are without effect or refused.
std::span<const FieldRow> unsupported_rows();

}  // namespace troupe::launch::serve::api
