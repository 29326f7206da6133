// What every benchmark is: a command line, something measured, lines for people and one JSON object
// for scripts.
#pragma once

#include <functional>
#include <string>

#include "benchmarks/support/options.h"
#include "benchmarks/support/peer.h"

namespace troupe::benchmarks {

struct Outcome {
  double value = 0;
  std::string unit;
  double ceiling = 0, ratio = 0;
  double peak_rss_mib = 0;
  /// Asked where --peer was given, after what was measured has left memory. None: a peer has
  /// nothing like this.
  std::function<PeerAnswer()> peer = {};
  double comparable = 0;  ///< what is compared with the peer, where that is not `value` because the
                          ///< peer's work is another
  double peak = 0;        ///< GFLOP/s of the processor's instructions; 0: the ceiling is memory
  double peak_ratio = 0;  ///< operations done a second, over `peak`
};

/// VmHWM of this process. Read before a ceiling takes memory of its own.
double peak_rss_mib();

/// A line for people: std::printf with a line end.
void say(const std::string& line);

/// main(): 0; 2 and a sentence for a bad command line; 1 and a sentence for all else. The last line
/// is the JSON object.
int run(const char* name, const Takes& takes, int count, char** words,
        Outcome (*measure)(const Options&));

}  // namespace troupe::benchmarks
