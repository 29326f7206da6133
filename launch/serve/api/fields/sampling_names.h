// The names of sampling parameters in requests, who defines them, and the ranges that are narrower
// there. What is not listed has its own name and range (engine/generate/sampling_params.h).
#pragma once

#include <optional>
#include <string_view>
#include <tuple>

#include "engine/base/json/fields.h"
#include "engine/generate/sampling_params.h"

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

/// Calls receive(name, member, range in requests, description) for each parameter that all
/// endpoints share, a field of `params` (SamplingParams).
void each_common_param(auto& params, const auto& receive) {
  engine::generate::SamplingParams::each_field(
      params, [&](std::string_view name, auto& member, const auto&... rest) {
        const RequestParam* param = request_param(name);
        const Range range = param && param->range ? *param->range : detail::range_of(rest...);
        const std::string_view text = std::get<sizeof...(rest) - 1>(std::tie(rest...));
        if (is_common_field(name)) receive(name, member, range, text);
      });
}

}  // namespace troupe::launch::serve::api
