// The formats of requests and answers beside those of OpenAI's completions and chat completions.
#pragma once

#include <vector>

#include "launch/serve/api/chat_format.h"

namespace troupe::launch::serve::formats {

/// /v1/responses of OpenAI's Responses API; /v1/messages and /v1/messages/count_tokens of
/// Anthropic's Messages API.
std::vector<api::ChatFormat> chat_formats();

}  // namespace troupe::launch::serve::formats
