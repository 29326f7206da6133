#include "launch/commands/settings.h"

#include "engine/generate/sampling_params_json.h"

namespace troupe::launch {

Result<> read_settings(const Json& object, engine::generate::SamplingParams& sampling) {
  const Json* drawn = object.find("do_sample");
  for (const auto& [key, value] : object.object()) {
    RETURN_IF_ERROR(engine::generate::read_setting(key, value, sampling));
    if (!drawn && !value.is_null() && engine::generate::asks_to_draw(key)) sampling.greedy = false;
  }
  // 0 is how SamplingParams say that nobody has set it yet.
  if (const Json* length = object.find("max_new_tokens"); length && *length == Json(0)) {
    return fail(Errc::bad_input, "max_new_tokens is 0; allowed: 1 or more");
  }
  return {};
}

}  // namespace troupe::launch
