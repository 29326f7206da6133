#include "actors/runtime/actor_state.h"

#include <vector>

#include "actors/runtime/detached.h"
#include "engine/base/text.h"

namespace troupe::actors {

Outcome outcome_of_current_exception(const std::string& who, const std::string& type) {
  Ending ending = ending_of_current_exception();
  if (ending.failure) return {fail(std::move(*ending.failure)), std::nullopt};
  std::string words = cat(who, " died handling '", type, "': ", *ending.bug);
  return {fail(Errc::internal, words), words};
}

Error not_handled(const Cell& cell, const std::string& who, const std::string& type) {
  std::vector<std::string> known;
  for (const auto& [name, handler] : cell.behavior) known.push_back(name);
  return {Errc::unsupported,
          cat(who, " does not handle '", quote(type), "'; it handles: ", join(known, ", "))};
}

}  // namespace troupe::actors
