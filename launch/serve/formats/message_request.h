// Requests of /v1/messages, Anthropic's Messages API, as chat requests.
#pragma once

#include <span>

#include "engine/base/json/json.h"
#include "launch/serve/formats/translation.h"

namespace troupe::launch::serve::formats {

/// `counts`: of /v1/messages/count_tokens, which reads the prompt only. Throws ApiFailure.
api::TranslatedRequest read_message_request(const Json& body, const api::ServedModel& model,
                                            bool counts);

/// ChatFormat::names.
std::span<const api::FieldName> message_field_names();

}  // namespace troupe::launch::serve::formats
