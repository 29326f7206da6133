// Whether a chat template shows what a conversation has: a text that is the same without a member
// has lost it.
#pragma once

#include <string>
#include <vector>

#include "engine/data/layouts/text_encoder.h"

namespace troupe::engine::data {

/// The first of reasoning_content, thinking and reasoning of a message that is a text and not
/// empty, or nullptr.
const std::string* reasoning_of(const Json& message);

/// Errc::bad_input if `text`, the rendered conversation, is the same without the tools or without
/// the calls of its messages.
Result<> check_tools_shown(const Json& messages, const Json& tools, const std::string& text,
                           bool add_generation_prompt, const TextEncoder& encoder);
/// Errc::bad_input if the last message has reasoning, which the text does not show. Templates leave
/// out the reasoning of earlier turns on purpose.
Result<> check_reasoning_shown(const Json& messages, const Json& tools, const std::string& text,
                               const TextEncoder& encoder);

/// Names of other members of the messages ("name") and of their calls ("tool_calls.id") that do not
/// change the rendered text.
/// Empty without a chat template.
std::vector<std::string> unshown_members(const Json& messages, const Json& tools,
                                         const TextEncoder& encoder);

/// Whether a message of a prompt has a weight, as only answers are trained on.
bool has_unused_weight(const Json& prompt);

}  // namespace troupe::engine::data
