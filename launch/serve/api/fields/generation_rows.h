// The fields of requests that generate text, and of those about tokens.
#pragma once

#include <vector>

#include "launch/serve/api/fields/field_table.h"

namespace troupe::launch::serve::api {

/// A part of field_tables().
std::vector<EndpointFields> generation_tables();

}  // namespace troupe::launch::serve::api
