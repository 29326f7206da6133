// Whole runs of the program over real rows that take a second or two.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/launch/program.h"

namespace troupe::test {

/// `--set` options without the output; sft: GSM8K, dpo: HH-RLHF, grpo: digit sequences.
std::string settings_of(const std::string& algorithm);

class SystemRuns : public testing::Test {
 protected:
  /// Removes the folder if the test passed.
  ~SystemRuns() override;
  /// Arguments of a run with the output `output` in the folder of this test case.
  std::string arguments(const std::string& algorithm, const std::string& output,
                        const std::string& more = "") const;
  /// The complete command for a Child.
  std::string command(const std::string& arguments) const;
  /// Options of prm: short rows with labels of their steps, in two micro-batches.
  std::string step_rows() const;
  std::string path(const std::string& below) const { return folder_ + "/" + below; }
  std::string log() const { return folder_ + "/log"; }

  /// Runs to the end, expects exit code 0, and returns stderr.
  std::string run(const std::string& arguments) const;
  /// The same under mpirun, as this many processes. Needs mpirun.
  void run_under_mpirun(int ranks, const std::string& arguments) const;
  std::size_t steps_written(const std::string& output) const;
  std::vector<double> losses(const std::string& output) const;
  /// Expects equal files in the last checkpoints, and equal metrics.
  void expect_same_bytes(const std::string& one, const std::string& other) const;
  /// Expects equal tensors in the last checkpoints, and equal metrics. The settings may differ.
  /// Older versions are not compared: they are as they were published, in bf16 or not.
  void expect_same_tensors(const std::string& one, const std::string& other) const;

  std::string folder_ = launch::scratch_folder();
};

}  // namespace troupe::test
