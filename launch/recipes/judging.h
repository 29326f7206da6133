// Judging: a configuration under examination, and the words in which its problems are told.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/config/run_config.h"

namespace troupe::launch {

struct Findings {
  std::vector<std::string> problems;  ///< refuse the run
  std::vector<std::string> warnings;
};

class Judging {
 public:
  Judging(const RunConfig& judged, const Origins& origins, Findings& findings)
      : config(judged), origins_(origins), findings_(findings) {}

  const RunConfig& config;

  /// Each says what would be valid.
  void problem(std::string text) { findings_.problems.push_back(std::move(text)); }
  void warn(std::string text) { findings_.warnings.push_back(std::move(text)); }
  /// "train.steps = 0 (run.yaml:7)"
  std::string named(std::string_view key) const;
  /// True when a file, --set or a preset says it.
  bool given(std::string_view key) const;
  /// Warns of a key that a person gave and that nothing reads, and says why.
  void unused(std::string_view key, std::string_view why);

 private:
  const Origins& origins_;
  Findings& findings_;
};

}  // namespace troupe::launch
