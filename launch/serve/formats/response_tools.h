// The fields of /v1/responses about tools as those of a chat request.
#pragma once

#include "launch/serve/formats/translation.h"

namespace troupe::launch::serve::formats {

/// Reads tools, tool_choice and parallel_tool_calls. Tools that OpenAI's servers run are refused by
/// their type; with allowed_tools the model sees the allowed ones only. Throws ApiFailure.
void read_response_tools(api::RequestFields& fields, api::TranslatedRequest& request);

}  // namespace troupe::launch::serve::formats
