// Prompts of a request: a text, a list of texts, a list of token ids, or a list of such lists.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/serve/api/request_fields.h"
#include "launch/serve/api/served_model.h"

namespace troupe::launch::api {

struct Prompts {
  std::vector<std::vector<std::int32_t>> ids;
  std::vector<std::string> texts;  ///< empty where the request has ids
};

/// Reads the field `name`, which must be there. Throws ApiFailure.
Prompts read_prompts(RequestFields& fields, const std::string& name, bool add_special,
                     const ServedModel& model);

}  // namespace troupe::launch::api
