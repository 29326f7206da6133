#include "actors/group/handler_table.h"

#include <optional>

namespace troupe::actors::group {

void follow(Line& line, const Followed& followed) {
  while (const std::optional<Call> call = line.next()) {
    try {
      const auto actor = followed.works_.find(call->actor);
      if (actor != followed.works_.end() && actor->second.contains(call->type)) {
        actor->second.find(call->type)->second(line, *call);
      } else {
        line.together(call->type, [&] {
          throw Failure(Error{Errc::not_found, cat("there is no actor '", call->actor,
                                                   "' that handles '", call->type, "'")});
        });
      }
    } catch (const Failure&) {  // of some rank; all have heard it, and the leader answers with it
    }
  }
}

}  // namespace troupe::actors::group
