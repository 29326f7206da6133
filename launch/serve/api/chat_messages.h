// Messages of a chat request, as the model's template receives them.
#pragma once

#include "engine/base/json.h"
#include "engine/tokenizer/chat_template.h"
#include "launch/serve/api/request_fields.h"

namespace troupe::launch::api {

/// Reads messages, add_generation_prompt, chat_template_kwargs and documents. A content that is a
/// list of text parts becomes one text, its parts joined by newlines. Throws ApiFailure.
engine::tokenizer::RenderInput read_conversation(RequestFields& fields);

}  // namespace troupe::launch::api
