#include "engine/constraints/member_index.h"

#include "engine/base/text/parse.h"

namespace troupe::engine::constraints {

const Json* MemberIndex::find(const Json& value, std::string_view key) {
  if (value.is_array()) {
    const auto index = parse_number<std::size_t>(key);
    return index && *index < value.array().size() ? &value.array()[*index] : nullptr;
  }
  constexpr std::size_t few = 16;
  if (!value.is_object() || value.object().size() <= few) return value.find(key);
  const auto [members, is_new] = objects_.try_emplace(&value);
  if (is_new)
    for (const auto& [name, member] : value.object()) members->second.emplace(name, &member);
  const auto found = members->second.find(key);
  return found == members->second.end() ? nullptr : found->second;
}

}  // namespace troupe::engine::constraints
