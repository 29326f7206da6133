// What a process without memory does where no code can report it: in a thread that begins or ends,
// or in a destructor.
#pragma once

namespace troupe {

/// From here on, a std::bad_alloc that is not caught ends the process at once with a sentence on
/// stderr and `exit_code`, instead of SIGABRT. Other exceptions abort as before.
void install_bad_alloc_handler(int exit_code);

}  // namespace troupe
