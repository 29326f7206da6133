// Requests of /v1/responses, OpenAI's Responses API, as chat requests. The server keeps no state:
// fields that refer to earlier responses are refused.
#pragma once

#include <span>

#include "engine/base/json/json.h"
#include "launch/serve/formats/translation.h"

namespace troupe::launch::serve::formats {

/// Throws ApiFailure.
api::TranslatedRequest read_response_request(const Json& body);

/// ChatFormat::names.
std::span<const api::FieldName> response_field_names();

}  // namespace troupe::launch::serve::formats
