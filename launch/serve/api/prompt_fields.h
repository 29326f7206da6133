// Prompts of a request: a text, a list of texts, a list of token ids, or a list of such lists.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/serve/api/request_fields.h"
#include "launch/serve/api/served_model.h"

namespace troupe::launch::serve::api {

struct Prompts {
  std::vector<std::vector<std::int32_t>> ids;
  std::vector<std::string> texts;  ///< empty where the request has ids
};

/// truncate_prompt_tokens and truncation_side.
struct Truncation {
  std::optional<std::int64_t> tokens;  ///< to keep; -1: as many as there is room for
  bool keeps_end = true;

  /// Whether the prompt was longer. `room`: tokens that -1 keeps.
  bool apply(std::vector<std::int32_t>& prompt, std::int64_t room) const;
};

/// Throws ApiFailure.
Truncation read_truncation(RequestFields& fields, std::int64_t context);

/// Reads the field `name`, which must be there. Throws ApiFailure.
Prompts read_prompts(RequestFields& fields, const std::string& name, bool add_special,
                     const ServedModel& model);

}  // namespace troupe::launch::serve::api
