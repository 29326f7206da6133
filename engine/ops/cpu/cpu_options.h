// Creation of the CPU devices.
#pragma once

#include <memory>

#include "engine/ops/cpu/context/options.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops {

/// The name of the best instruction set that this processor has, as in CpuOptions::isa.
const char* best_instruction_set();

/// Creates the CPU device. Results have the same bits for any number of threads, and for avx2,
/// avx512 and avx512_bf16 (which flushes sums of bf16 products below 2^-126 to zero).
std::unique_ptr<Device> make_cpu_device(CpuOptions options = {});

/// Creates the reference device: plain loops and Eigen on one thread, the test oracle.
std::unique_ptr<Device> make_reference_device();

}  // namespace troupe::engine::ops
