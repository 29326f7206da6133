// InstructionPeak: the rate of the processor's multiply-add instructions on registers. No product
// can be faster: a benchmark that exceeds it counts operations or time wrongly. It is the
// denominator of the utilization that a run reports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/ops/types.h"

namespace troupe::engine::ops {

class InstructionPeak {
 public:
  /// Uses the instructions of `isa` (as in CpuOptions; empty: the best): fused multiply-adds in f32
  /// and, for bf16 where the processor supports them, dot products of bf16 pairs.
  InstructionPeak(int threads, Precision precision, const std::string& isa = "");

  /// Runs them on every thread, five times, and keeps the best rate. 400000 steps take a few
  /// milliseconds.
  void measure(std::int64_t steps = 400'000);
  /// FLOP/s of the best measurement so far.
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

}  // namespace troupe::engine::ops
