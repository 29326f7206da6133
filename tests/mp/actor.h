// A sharded actor whose ranks are processes.
#pragma once

#include <string>

#include "engine/parallel/communicator.h"

namespace troupe::test {

/// Rank 0 asks the toy of tests/actors/group on all ranks of `world`, the others follow. Returns
/// what was wrong: nothing, when the replies are those of a group of threads, bit for bit.
std::string ask_an_actor(engine::parallel::Communicator& world);
/// The same, but rank 1 makes a mistake while it handles the message.
std::string ask_for_a_mistake(engine::parallel::Communicator& world);

}  // namespace troupe::test
