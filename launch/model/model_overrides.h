// ModelOverrides: values in place of those of a model's config.json (engine/models/overrides.h).
#pragma once

#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/json.h"

namespace troupe::launch {

struct ModelOverrides {
  Json values = Json::Object{};  ///< an object
  bool operator==(const ModelOverrides&) const = default;
};

/// The prefix of one of them, "model_overrides.rope_theta=1000000".
inline constexpr std::string_view override_prefix = "model_overrides.";

/// Adds "KEY=VALUE", with or without the prefix; VALUE is YAML. Errc::usage.
Result<> add_override(ModelOverrides& to, const std::string& text);

}  // namespace troupe::launch
