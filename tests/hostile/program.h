// Runs the built program under watch: how it ended, how long it took, how much memory it had at
// most.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::hostile {

/// What the program's surroundings refuse it.
struct Surroundings {
  std::int64_t longest_file =
      -1;  ///< bytes; a write beyond ends with EFBIG, as on a disk that is full for this file
  std::string disk;        ///< a folder that lies on a disk of its own, of 64 KiB
  bool read_only = false;  ///< nothing can be written to that disk
};

struct Ended {
  int code = 0;                  ///< exit code, or minus the signal that it died of
  bool in_time = true;           ///< false: it was killed after `timeout`
  bool started = true;           ///< false: this machine does not allow the surroundings
  double seconds = 0;            ///< from its start to its end
  double processor_seconds = 0;  ///< of all its threads
  double peak_mib = 0;           ///< of its resident memory
  std::string out, err;          ///< at most 1 MiB of each
};

/// The program with `arguments` as a shell reads them, in a shell that it replaces; `input` is its
/// stdin. Files of its own begin with `files`.
Ended run_hostile(const std::string& files, const std::string& arguments, const std::string& input,
                  const Surroundings& surroundings);

}  // namespace troupe::hostile
