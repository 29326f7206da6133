// Conversations in their normal form: an array of {"role", "content", ...} with string content.
#pragma once

#include "engine/base/json.h"

namespace troupe::engine::data {

Json message(std::string_view role, std::string text);

/// A list of messages, in Hugging Face's words (role, content) or ShareGPT's (from, value; human, gpt, observation, function_call).
/// Content in parts of type text is joined; other members stay. Errc::bad_input, without the place.
Result<Json> to_messages(const Json& list);

/// The `tools` column: a list, or its JSON text; null or empty gives null.
Result<Json> to_tools(const Json* tools);

bool is_assistant(const Json& message);

}  // namespace troupe::engine::data
