// The choice of kernels on x86-64 processors.
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/ops/cpu/kernels.h"

namespace troupe::engine::ops {
namespace {

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

bool has_avx512_bf16() {
  return has_avx512() && __builtin_cpu_supports("avx512bf16");
}

struct Set {
  std::string_view name;
  bool (*there)();
  const Kernels& (*kernels)();
};
constexpr Set sets[] = {{"avx512_bf16", has_avx512_bf16, avx512_bf16_kernels},
                        {"avx512", has_avx512, avx512_kernels},
                        {"avx2", has_avx2, avx2_kernels},
                        {"baseline", [] { return true; }, baseline_kernels}};

}  // namespace

const Kernels& kernels_for(const char* isa) {
  const std::string_view name = isa;
  for (const Set& set : sets) {
    if (name.empty() ? set.there() : name == set.name && set.there()) return set.kernels();
    if (name == set.name)
      throw Failure(
          {Errc::unsupported, cat("this processor does not have ", name,
                                  "; leave the instruction set open to use the best it has")});
  }
  throw Failure({Errc::usage, cat("no instruction set is called \"", quote(name),
                                  "\"; known are baseline, avx2, avx512 and avx512_bf16")});
}

}  // namespace troupe::engine::ops
