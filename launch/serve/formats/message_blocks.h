// The messages of /v1/messages, with their blocks, as messages of a chat request.
#pragma once

#include "engine/base/json/json.h"
#include "launch/serve/api/generation_request.h"
#include "launch/serve/formats/conversation_builder.h"

namespace troupe::launch::serve::formats {

/// Reads messages whose contents are texts or lists of blocks: text, tool_use, tool_result and
/// thinking. Members without a meaning here are added to `unknown`. Throws ApiFailure; for other
/// blocks, such as images, by their type.
void read_message_blocks(const Json& messages, ConversationBuilder& conversation,
                         api::UnknownFields& unknown);

/// A text or a list of blocks of type text, as content of a chat message; `field` names it.
Json text_blocks(const Json& content, const std::string& field);

}  // namespace troupe::launch::serve::formats
