#include "launch/recipes/held_out.h"

#include <algorithm>

#include "engine/base/text.h"
#include "launch/recipes/lora.h"

namespace troupe::launch {

void validate_eval(Validation& v) {
  const auto& held_out = v.config.eval.path;
  if (held_out.empty()) v.unused("eval.every", "there are no held-out rows: eval.path is empty");
  for (const auto& path : held_out)
    if (std::ranges::find(v.config.data.path, path) != v.config.data.path.end())
      v.warn(cat(v.named("eval.path"),
                 ": is also in data.path: eval metrics will not measure generalization"));
}

void validate_following(Validation& v, std::string_view section,
                        const algorithms::ReferenceSync& following) {
  const std::string every = cat(section, ".sync_every");
  if (following.every > 0 && adapts(v.config))
    v.problem(cat(v.named(every),
                  ": with an adapter (lora.*) the reference is the frozen base model; set it to 0, "
                  "or train the whole model"));
  if (following.every == 0)
    v.unused(cat(section, ".sync_share"), cat("the reference is not updated: ", every, " is 0"));
}

engine::data::DataOptions eval_options(const RunContext& context) {
  auto options = context.data_options();
  options.paths = context.config().eval.path;
  options.mix.clear();
  return options;
}

}  // namespace troupe::launch
