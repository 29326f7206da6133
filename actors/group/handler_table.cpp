#include "actors/group/handler_table.h"

#include <optional>

namespace troupe::actors::group {

void HandlerTable::serve(GroupChannel& channel) const {
  while (const std::optional<GroupCall> call = channel.next()) {
    try {
      const auto actor = actors_.find(call->actor);
      if (actor != actors_.end() && actor->second.contains(call->type)) {
        actor->second.find(call->type)->second(channel, *call);
      } else {
        channel.run_on_all_ranks(call->type, [&] {
          throw Failure(Error{Errc::not_found, cat("there is no actor '", call->actor,
                                                   "' that handles '", call->type, "'")});
        });
      }
    } catch (const Failure&) {
      // run_on_all_ranks() throws it on every rank; the leader replies with it.
    }
  }
}

}  // namespace troupe::actors::group
