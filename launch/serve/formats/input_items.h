// The input of /v1/responses as messages of a chat request.
#pragma once

#include "engine/base/json.h"
#include "launch/serve/api/generation_request.h"
#include "launch/serve/formats/conversation_builder.h"

namespace troupe::launch::serve::formats {

/// Reads a text or a list of items: messages (role and content), function_call,
/// function_call_output and reasoning. Members without a meaning here are added to `unknown`.
/// Throws ApiFailure; for other items, whose content the server does not have, by their type.
void read_input(const Json& input, ConversationBuilder& conversation, api::UnknownFields& unknown);

}  // namespace troupe::launch::serve::formats
