#include "engine/ops/cpu/kernels/kernels.h"

#include <cmath>
#include <string_view>

#include "engine/base/errors/check.h"
#include "engine/base/errors/error.h"
#include "engine/base/random/random.h"
#include "engine/base/text/text.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops::cpu {
namespace {

struct InstructionSet {
  std::string_view name;
  bool (*supported)();
  const Kernels& (*kernels)();
};

#if defined(__x86_64__)
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

constexpr InstructionSet instruction_sets[] = {
    {"avx512_bf16", has_avx512_bf16, avx512_bf16_kernels},
    {"avx512", has_avx512, avx512_kernels},
    {"avx2", has_avx2, avx2_kernels},
    {"baseline", [] { return true; }, baseline_kernels}};
#else
bool unsupported() {
  return false;
}

constexpr InstructionSet instruction_sets[] = {{"avx512_bf16", unsupported, baseline_kernels},
                                               {"avx512", unsupported, baseline_kernels},
                                               {"avx2", unsupported, baseline_kernels},
                                               {"baseline", [] { return true; }, baseline_kernels}};
#endif

}  // namespace

const Kernels& kernels_for(const char* isa) {
  const std::string_view name = isa;
  for (const InstructionSet& set : instruction_sets) {
    if ((name.empty() || name == set.name) && set.supported()) return set.kernels();
    if (name == set.name)
      throw Failure({Errc::unsupported,
                     cat("this processor does not support ", name,
                         "; leave the instruction set unset to use the best one available")});
  }
  throw Failure({Errc::usage, cat("unknown instruction set \"", quote(name),
                                  "\"; expected baseline, avx2, avx512 or avx512_bf16")});
}

DropoutRow::DropoutRow(double probability, std::uint64_t random_key, std::uint64_t id,
                       std::uint32_t stream)
    : key{low_word(random_key), high_word(random_key)},
      counter{low_word(id), high_word(id), stream},
      bound(static_cast<std::uint32_t>(probability * 0x1.0p32)),
      factor(static_cast<float>(1 / (1 - probability))) {
  check(probability >= 0 && probability < 1, "dropout: a probability in [0, 1)");
}

AdamWScalars::AdamWScalars(const AdamW& how) {
  check(how.step >= 1, "adamw: steps count from 1");
  const double correction1 = 1 - std::pow(how.beta1, static_cast<double>(how.step));
  const double correction2 = 1 - std::pow(how.beta2, static_cast<double>(how.step));
  decay = static_cast<float>(1 - how.learning_rate * how.weight_decay);
  one_minus_beta1 = static_cast<float>(1 - how.beta1);
  beta2 = static_cast<float>(how.beta2);
  one_minus_beta2 = static_cast<float>(1 - how.beta2);
  sqrt_correction2 = static_cast<float>(std::sqrt(correction2));
  eps = static_cast<float>(how.eps);
  step_size = static_cast<float>(how.learning_rate / correction1);
  grad_scale = how.grad_scale;
  clear_gradients = how.clear_gradients;
}

}  // namespace troupe::engine::ops::cpu
