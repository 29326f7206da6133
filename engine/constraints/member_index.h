// MemberIndex: members of JSON objects by name. Json::find() is linear, and a schema may refer to
// each of many definitions.
#pragma once

#include <string_view>
#include <unordered_map>

#include "engine/base/json/json.h"

namespace troupe::engine::constraints {

class MemberIndex {
 public:
  /// A member of an object, or an element of an array by its index; nullptr when there is none.
  /// `value` must outlive this and not change.
  const Json* find(const Json& value, std::string_view key);

 private:
  using Members = std::unordered_map<std::string_view, const Json*>;
  std::unordered_map<const Json*, Members> objects_;
};

}  // namespace troupe::engine::constraints
