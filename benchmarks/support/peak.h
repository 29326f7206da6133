// InstructionPeak: the rate of the processor's multiply-add instructions on registers. No product
// can be faster: a benchmark that exceeds it counts operations or time wrongly.
#pragma once

#include <cstdint>
#include <vector>

#include "benchmarks/support/options.h"

namespace troupe::benchmarks {

class InstructionPeak {
 public:
  /// Uses the instructions of options.isa (default: the best): fused multiply-adds in f32 and, for
  /// bf16 where the processor supports them, dot products of bf16 pairs.
  explicit InstructionPeak(const Options& options);

  /// Runs them on every thread for a few milliseconds and keeps the best rate.
  void measure();
  /// GFLOP/s of the best measurement so far.
  double best() const { return best_; }

 private:
  struct Instruction {
    double flops = 0;  ///< per step
    float (*run)(std::int64_t steps) = nullptr;
  };
  static Instruction multiply_add(const std::string& isa);
  double rate(const Instruction& instruction, std::int64_t steps) const;

  int threads_;
  std::vector<Instruction> instructions_;
  double best_ = 0;
};

}  // namespace troupe::benchmarks
