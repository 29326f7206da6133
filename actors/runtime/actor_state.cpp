#include "actors/runtime/actor_state.h"

#include <vector>

#include "actors/runtime/detached.h"
#include "engine/base/text/text.h"

namespace troupe::actors {

HandlerOutcome failed_handler(const std::string& who, const std::string& type) {
  CaughtException caught = caught_exception();
  if (caught.failure) return {fail(std::move(*caught.failure)), std::nullopt};
  std::string message = cat(who, " died handling '", type, "': ", *caught.bug);
  return {fail(Errc::internal, message), message};
}

Error not_handled(const ActorState& actor, const std::string& who, const std::string& type) {
  std::vector<std::string> known;
  for (const auto& [name, handler] : actor.behavior) known.push_back(name);
  return {Errc::unsupported,
          cat(who, " does not handle '", quote(type), "'; it handles: ", join(known, ", "))};
}

}  // namespace troupe::actors
