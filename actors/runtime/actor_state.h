// ActorState: one actor in its node: mailbox, handlers, and whether it lives. Only the control
// executor touches it; its compute handlers run on its engine executor, one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "actors/runtime/behavior.h"
#include "actors/runtime/mailbox.h"
#include "actors/runtime/scheduler.h"

namespace troupe::actors {

struct ActorState {
  std::string name;
  Behavior behavior;
  Executor* executor = nullptr;  ///< where compute handlers run and the actor is destroyed
  Mailbox mailbox;
  std::size_t max_concurrency = 1;
  std::size_t running = 0;                  ///< handlers between their start and their end
  std::string handling;                     ///< the type of the message that was started last
  std::optional<std::string> death_reason;  ///< set when it has died
};

/// What a handler ended with: the body of its reply, or an error; last words when it was a mistake
/// of ours.
struct HandlerOutcome {
  Result<transports::Body> answer;
  std::optional<std::string> death_reason;
  std::int64_t began = 0, ended = 0;  ///< of the handler, nanoseconds of the scheduler's clock
};

/// From inside a catch block: an HandlerOutcome of the exception that ended a handler of `who`
/// ("main/policy") for message `type`.
HandlerOutcome failed_handler(const std::string& who, const std::string& type);

/// Errc::unsupported, naming what the actor does handle.
Error not_handled(const ActorState& actor, const std::string& who, const std::string& type);

}  // namespace troupe::actors
