#include "launch/model/model_overrides.h"

#include "engine/base/text.h"
#include "launch/config/values.h"

namespace troupe::launch {

Result<> add_override(ModelOverrides& to, const std::string& text) {
  const std::string pair =
      text.starts_with(override_prefix) ? text.substr(override_prefix.size()) : text;
  const auto equals = pair.find('=');
  if (equals == std::string::npos || equals == 0)
    return fail(Errc::usage, cat(quote(text),
                                 ": expected KEY=VALUE, such as rope_theta=1000000 or "
                                 "rope_scaling='{rope_type: yarn, factor: 4}'"));
  const auto value = parse_yaml(pair.substr(equals + 1), text);
  RETURN_IF_ERROR(value);
  to.values.set(pair.substr(0, equals), json_of(*value));
  return {};
}

}  // namespace troupe::launch
