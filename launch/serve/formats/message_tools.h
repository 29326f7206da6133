// The fields of /v1/messages about tools as those of a chat request.
#pragma once

#include "launch/serve/formats/translation.h"

namespace troupe::launch::serve::formats {

/// Reads tools and tool_choice. Tools of Anthropic's servers and those whose schema only their
/// models know are refused by their type. Throws ApiFailure.
void read_message_tools(api::RequestFields& fields, api::TranslatedRequest& request);

}  // namespace troupe::launch::serve::formats
