// Runs the built program with limits, and measures how it ended, its time and its memory.
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/sanitized.h"

namespace troupe::hostile {

using test::sanitized;

/// Restrictions of the program's environment.
struct Surroundings {
  std::int64_t longest_file =
      /// Bytes; a larger write ends with EFBIG, as on a full disk.
      -1;
  std::string disk;        ///< a folder on a separate file system of 64 KiB
  bool read_only = false;  ///< nothing can be written to that file system
};

struct Ended {
  int code = 0;                  ///< exit code, or minus the signal that ended it
  bool in_time = true;           ///< false: it was killed after `timeout`
  bool started = true;           ///< false: this machine does not support the restrictions
  double seconds = 0;            ///< wall-clock time
  double processor_seconds = 0;  ///< processor time of all its threads
  double peak_mib = 0;           ///< peak resident memory
  std::string out, err;          ///< at most 1 MiB of each
};

/// Runs the program with `arguments`, parsed by a shell that it replaces; `input` is its stdin. Its
/// files begin with `files`.
Ended run_hostile(const std::string& files, const std::string& arguments, const std::string& input,
                  const Surroundings& surroundings);

}  // namespace troupe::hostile
