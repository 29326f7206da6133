// The fields of a chat request about tools: tools, tool_choice and parallel_tool_calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/json/json.h"
#include "launch/serve/api/output_constraints.h"
#include "launch/serve/api/request_fields.h"

namespace troupe::launch::serve::api {

inline constexpr std::size_t max_tools = 128;  ///< of a request; of the OpenAI API

enum class ToolChoice : std::uint8_t {
  none,       ///< the answer is a text
  automatic,  ///< the model decides
  required,   ///< at least one call
  function,   ///< a call of Tools::function
};

struct Tools {
  Json list;  ///< for the chat template; null: no tools
  ToolChoice choice = ToolChoice::none;
  std::string function;
  bool parallel = true;  ///< more than one call is allowed
};

/// Throws ApiFailure.
Tools read_tools(RequestFields& fields);

/// The schema of an answer that must be a call, as in vLLM: the parameters of the function, or a
/// list of {"name", "parameters"} for ToolChoice::required. Nothing for the other choices.
std::optional<ConstraintText> tool_constraint(const Tools& tools);

}  // namespace troupe::launch::serve::api
