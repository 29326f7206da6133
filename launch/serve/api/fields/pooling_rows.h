// The fields of requests for scores and embeddings.
#pragma once

#include <vector>

#include "launch/serve/api/fields/field_table.h"

namespace troupe::launch::serve::api {

/// A part of field_tables().
std::vector<EndpointFields> pooling_tables();

}  // namespace troupe::launch::serve::api
