// Conversations in their normal form: an array of {"role", "content", ...} with string content.
#pragma once

#include "engine/data/layouts/columns.h"

namespace troupe::engine::data {

Json message(std::string_view role, std::string text);

/// A list of messages, in Hugging Face's words (role, content), ShareGPT's (from, value; human,
/// gpt, model, chatbot, bot, observation, function, function_call) or those of `tags`. Content in
/// parts of type text is joined; calls of tools come into the form that templates read (tool_calls
/// with arguments as objects), from OpenAI's texts and from ShareGPT's turns alike; other members
/// stay. Errc::bad_input, without the place.
Result<Json> to_messages(const Json& list, const Tags& tags);

/// The `tools` column: a list, or its JSON text; null or empty gives null.
Result<Json> to_tools(const Json* tools);

bool is_assistant(const Json& message);

}  // namespace troupe::engine::data
