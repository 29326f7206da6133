// What a user would run instead, in the same run: the PyTorch program that TROUPE_PEER names
// (torch_lm.py), with the python of TROUPE_PEER_PYTHON (default /usr/bin/python3) and the settings
// without which PyTorch is twice as slow on small machines.
#pragma once

#include <optional>
#include <string>

#include "benchmarks/support/options.h"

namespace troupe::benchmarks {

struct PeerAnswer {
  std::optional<double> value;  ///< in the unit requested; none: it is not here
  std::string name;             ///< what ran, or a sentence why nothing did
  double peak_rss_mib = 0;
};

/// `mode`: torch_lm.py's (train, dpo, gen16). Its rate is the number before `unit` (tok/s, pairs/s)
/// in its line; where that has few digits, `step_amount` of them over the seconds behind "step " in
/// it.
PeerAnswer ask_peer(const Options& options, const std::string& mode, const std::string& unit,
                    double step_amount = 0);

/// Whether memory has room for a peer beside this process, whose peak is given: it takes up to four
/// times as much of a small model, half as much again of a large one.
bool peer_has_room(double own_peak_mib);

/// A word for a shell, and what a command writes on stdout.
std::string quoted(const std::string& word);
std::string output_of(const std::string& command);

}  // namespace troupe::benchmarks
