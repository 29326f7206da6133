#include "launch/recipes/judging.h"

#include "engine/base/text.h"
#include "launch/config/fields.h"

namespace troupe::launch {

std::string Judging::named(std::string_view key) const {
  return cat(key, " = ", value_text(*find_field(key), config), " (", origins_.at(std::string(key)),
             ")");
}

bool Judging::given(std::string_view key) const {
  const auto found = origins_.find(std::string(key));
  return found != origins_.end() && found->second != "default";
}

void Judging::unused(std::string_view key, std::string_view why) {
  const auto found = origins_.find(std::string(key));
  const bool preset = found != origins_.end() && (found->second.starts_with("dialect ") ||
                                                  found->second.starts_with("algorithm "));
  if (given(key) && !preset) warn(cat(named(key), ": ", why));
}

}  // namespace troupe::launch
