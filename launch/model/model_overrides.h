// ModelOverrides: values in place of those of a model's config.json (engine/models/overrides.h).
#pragma once

#include "engine/base/json/json.h"

namespace troupe::launch::model {

struct ModelOverrides {
  Json values = Json::Object{};  ///< an object
  bool operator==(const ModelOverrides&) const = default;
};

}  // namespace troupe::launch::model
