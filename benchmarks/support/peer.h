// Comparison with PyTorch in the same run: the program that TROUPE_PEER names (torch_lm.py), with
// the python of TROUPE_PEER_PYTHON (default /usr/bin/python3) and the settings without which
// PyTorch is half as fast on small machines.
#pragma once

#include <optional>
#include <string>

#include "benchmarks/support/options.h"

namespace troupe::benchmarks {

struct PeerAnswer {
  std::optional<double> value;  ///< in the requested unit; nullopt: not available
  std::string name;             ///< what was run, or why nothing was
  double peak_rss_mib = 0;
};

/// Runs torch_lm.py with `mode` (train, dpo, gen16). Its rate is the number before `unit` (tok/s,
/// pairs/s) in its output; if that has few digits, `step_amount` divided by the seconds after "step
/// ".
PeerAnswer ask_peer(const Options& options, const std::string& mode, const std::string& unit,
                    double step_amount = 0);

/// True if the memory suffices for a peer beside this process, given the peak of this process: the
/// peer needs up to four times as much for a small model, 1.5 times as much for a large one.
bool peer_has_room(double own_peak_mib);

/// quoted: an argument for a shell. output_of: what a command writes to stdout.
std::string quoted(const std::string& word);
std::string output_of(const std::string& command);

}  // namespace troupe::benchmarks
