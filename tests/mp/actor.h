// A sharded actor whose ranks are processes.
#pragma once

#include <string>

#include "engine/parallel/communicator.h"

namespace troupe::test {

/// Rank 0 sends asks to the toy of tests/actors/group on all ranks of `world`; the others follow.
/// Returns an error, or "" if the replies equal those of a group of threads, bit for bit.
std::string ask_an_actor(engine::parallel::Communicator& world);
/// The same with an error of rank 1 while it handles the message.
std::string ask_for_a_mistake(engine::parallel::Communicator& world);

}  // namespace troupe::test
