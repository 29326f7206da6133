// A thread that leaves the process's signals to others.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace troupe {

/// Runs `work` on a thread where no signal to the process is handled: those are main's, and no
/// handler comes in the middle of its work. What its own instructions cause (a lost page of a
/// mapped file, for one) is handled there. Of `name`, debuggers show 15 bytes.
std::thread quiet_thread(const std::string& name, std::function<void()> work);

}  // namespace troupe
