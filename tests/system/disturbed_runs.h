// Runs that are killed, or whose files a power failure damages, beside an undisturbed one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/system/recorded_files.h"
#include "tests/system/runs.h"

namespace troupe::test {

/// The eight methods whose runs are disturbed, and sft on four ranks, which write files together.
inline constexpr const char* disturbed_methods[] = {"sft", "dpo",  "kto", "orpo",     "simpo",
                                                    "cpo", "grpo", "ppo", "sft_ranks"};

/// The number in the environment variable `name`, by which tests/long.sh asks for more.
std::size_t wanted_count(const char* name, std::size_t otherwise);

class DisturbedRuns : public SystemRuns {
 protected:
  ~DisturbedRuns() override;
  /// Outside of the folder, whose operations are recorded.
  std::string log() const { return folder_ + ".log"; }
  /// Twelve steps with six checkpoints; in grpo and ppo the run ends at the end of a rollout step;
  /// those of grpo replay sampling masks.
  std::string run_of(const std::string& method, const std::string& output) const;
  /// Environment settings of a command that is recorded or disturbed (tests/support/file_recorder).
  std::string recorder(const std::string& settings) const;
  /// Runs to the end and records its operations on the files of the folder `output`, which is new.
  std::vector<FileOperation> record(const std::string& method, const std::string& output) const;
  /// Expects the weights, metrics, samples and names of an undisturbed run.
  void expect_undisturbed(const std::string& whole, const std::string& other) const;
  /// Names of files that a run must not leave behind.
  std::vector<std::string> leftovers(const std::string& output) const;
};

}  // namespace troupe::test
