// The fields of OpenAI's Responses API and Anthropic's Messages API.
#pragma once

#include <vector>

#include "launch/serve/api/fields/field_table.h"

namespace troupe::launch::serve::api {

/// A part of field_tables().
std::vector<EndpointFields> format_tables();

}  // namespace troupe::launch::serve::api
