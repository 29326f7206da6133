// Messages of a chat request, as the model's template receives them.
#pragma once

#include "launch/serve/api/request_fields.h"
#include "launch/serve/api/served_model.h"

namespace troupe::launch::serve::api {

/// Reads messages, add_generation_prompt, continue_final_message, chat_template_kwargs,
/// reasoning_effort and documents. A content that is a list of text parts becomes one text, its
/// parts joined by newlines. Throws ApiFailure.
Conversation read_conversation(RequestFields& fields);

}  // namespace troupe::launch::serve::api
