// The frame of every benchmark: a command line, a measurement, lines of text and one JSON object
// for scripts.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/support/options.h"
#include "benchmarks/support/peer.h"

namespace troupe::benchmarks {

struct Outcome {
  double value = 0;
  std::string unit;
  double ceiling = 0, ratio = 0;
  double peak_rss_mib = 0;
  /// Called if --peer was given, after the memory of the measurement was released. Empty: there is
  /// no comparable peer.
  std::function<PeerAnswer()> peer = {};
  /// Value that is compared with the peer if it does different work than `value` counts.
  double comparable = 0;
  double peak = 0;        ///< GFLOP/s of the processor's instructions; 0: the ceiling is memory
  double peak_ratio = 0;  ///< operations per second divided by `peak`
  /// Further figures of the JSON object, by name.
  std::vector<std::pair<std::string, double>> figures = {};
};

/// Returns VmHWM of this process. Read it before a ceiling allocates memory.
double peak_rss_mib();

/// Prints a line to stdout.
void say(const std::string& line);

/// Implements main(): returns 0; 2 with a message for an invalid command line; 1 with a message for
/// any other error. The last line of output is the JSON object.
int run(const char* name, const Takes& takes, int count, char** words,
        Outcome (*measure)(const Options&));

}  // namespace troupe::benchmarks
