// Conversations in their normal form: an array of {"role", "content", ...} with string content.
#pragma once

#include "engine/data/layouts/columns.h"

namespace troupe::engine::data {

Json message(std::string_view role, std::string text);

/// Normalizes a list of messages with the names of Hugging Face (role, content), ShareGPT (from,
/// value; human, gpt, model, chatbot, bot, observation, function, function_call) or `tags`. Content
/// parts of type text are joined; tool calls of OpenAI's and ShareGPT's form are converted to
/// tool_calls with arguments as objects; other members are kept. Errc::bad_input, without the
/// location.
Result<Json> to_messages(const Json& list, const Tags& tags);

/// A list of messages that a column has as JSON text, as tables do; any other value unchanged.
/// Errc::bad_input, without the location, for a text that begins as such a list and is no JSON,
/// such as the notation of Python.
Result<Json> parsed_messages(const Json& value, const Tags& tags);

/// The `tools` column: a list, or its JSON text; null or empty gives null.
Result<Json> to_tools(const Json* tools);

bool is_assistant(const Json& message);

}  // namespace troupe::engine::data
