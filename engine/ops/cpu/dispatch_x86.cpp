// The choice of kernels on x86-64 processors.
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/ops/cpu/kernels.h"

namespace troupe::engine::ops {
namespace {

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq");
}

}  // namespace

const Kernels& kernels_for(const char* isa) {
  const std::string_view name = isa;
  if (name.empty()) return has_avx512() ? avx512_kernels() : has_avx2() ? avx2_kernels() : baseline_kernels();
  if (name == "baseline") return baseline_kernels();
  if (name != "avx2" && name != "avx512") {
    throw Failure({Errc::usage, cat("no instruction set is called \"", quote(name), "\"; known are baseline, avx2 and avx512")});
  }
  const bool wide = name == "avx512";
  if (wide ? !has_avx512() : !has_avx2()) {
    throw Failure(
        {Errc::unsupported, cat("this processor does not have ", name, "; leave the instruction set open to use the best it has")});
  }
  return wide ? avx512_kernels() : avx2_kernels();
}

}  // namespace troupe::engine::ops
