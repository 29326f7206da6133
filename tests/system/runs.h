// Whole runs of the program over real rows, small enough to be done in a second or two.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/launch/program.h"

namespace troupe::test {

/// `--set` of everything but the output; sft: GSM8K, dpo: HH-RLHF, grpo: digit sequences.
std::string settings_of(const std::string& algorithm);

class SystemRuns : public testing::Test {
 protected:
  /// A good run leaves nothing behind.
  ~SystemRuns() override;
  /// The arguments of a run whose output is `output` in this case's own folder.
  std::string arguments(const std::string& algorithm, const std::string& output,
                        const std::string& more = "") const;
  /// The whole command, program included, for a Child.
  std::string command(const std::string& arguments) const;
  std::string path(const std::string& below) const { return folder_ + "/" + below; }
  std::string log() const { return folder_ + "/log"; }

  /// Runs to the end, which must be a good one; returns what it said on stderr.
  std::string run(const std::string& arguments) const;
  std::size_t steps_written(const std::string& output) const;
  std::vector<double> losses(const std::string& output) const;
  /// The same files with the same bytes in their last checkpoints, and the same metrics.
  void expect_same_bytes(const std::string& one, const std::string& other) const;

  std::string folder_ = launch::scratch_folder();
};

}  // namespace troupe::test
