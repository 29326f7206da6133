// The names of sampling parameters in requests, who defines them, and the ranges that are narrower
// there. What is not listed has its own name and range (engine/generate/sampling_params.h).
#pragma once

#include <optional>
#include <string_view>

#include "engine/base/fields.h"

namespace troupe::launch::serve::api {

struct RequestParam {
  std::string_view name;     ///< of SamplingParams::each_field()
  std::string_view request;  ///< in requests
  unsigned peers = 0;        ///< of field_table.h
  std::optional<Range> range = std::nullopt;
  std::string_view note = {};  ///< in addition to the description of the parameter
};

/// nullptr: the parameter has its own name, and only troupe knows it.
const RequestParam* request_param(std::string_view name);
/// The name in requests.
std::string_view request_name(std::string_view name);
/// False for what endpoints have fields of their own for: the length, and what ends an output.
bool is_common_field(std::string_view name);

}  // namespace troupe::launch::serve::api
