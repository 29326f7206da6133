#include "engine/ops/cpu/instruction_peak.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <ctime>
#include <functional>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace troupe::engine::ops {
namespace {

// Enough independent sums to hide an instruction's latency, few enough to stay in registers.
constexpr int sums_of_16_registers = 12, sums_of_32_registers = 24;

// Each sum has a different initial value: the compiler would compute equal ones once.
constexpr float initial_sum(int sum) {
  return static_cast<float>(sum);
}

using Floats4 = float __attribute__((vector_size(16)));

// Baseline instructions: a product, then a sum.
float multiply_add_128(std::int64_t steps) {
  std::array<Floats4, sums_of_16_registers> sums;
#pragma GCC unroll 32
  for (int i = 0; i < sums_of_16_registers; ++i)
    sums[static_cast<std::size_t>(i)] = Floats4{} + initial_sum(i);
  for (; steps > 0; --steps) {
#pragma GCC unroll 32
    for (Floats4& sum : sums) sum = sum * 0.999F + 0.001F;
  }
  Floats4 all{};
#pragma GCC unroll 32
  for (const Floats4& sum : sums) all += sum;
  return all[0] + all[1] + all[2] + all[3];
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) float multiply_add_256(std::int64_t steps) {
  const __m256 factor = _mm256_set1_ps(0.999F), term = _mm256_set1_ps(0.001F);
  __m256 sums[sums_of_16_registers];
#pragma GCC unroll 32
  for (int i = 0; i < sums_of_16_registers; ++i) sums[i] = _mm256_set1_ps(initial_sum(i));
  for (; steps > 0; --steps) {
#pragma GCC unroll 32
    for (auto& sum : sums) sum = _mm256_fmadd_ps(sum, factor, term);
  }
  __m256 all = _mm256_setzero_ps();
#pragma GCC unroll 32
  for (const auto& sum : sums) all = _mm256_add_ps(all, sum);
  return _mm256_cvtss_f32(all);
}

__attribute__((target("avx512f"))) float multiply_add_512(std::int64_t steps) {
  const __m512 factor = _mm512_set1_ps(0.999F), term = _mm512_set1_ps(0.001F);
  __m512 sums[sums_of_32_registers];
#pragma GCC unroll 32
  for (int i = 0; i < sums_of_32_registers; ++i) sums[i] = _mm512_set1_ps(initial_sum(i));
  for (; steps > 0; --steps) {
#pragma GCC unroll 32
    for (auto& sum : sums) sum = _mm512_fmadd_ps(sum, factor, term);
  }
  __m512 all = _mm512_setzero_ps();
#pragma GCC unroll 32
  for (const auto& sum : sums) all = _mm512_add_ps(all, sum);
  return _mm512_cvtss_f32(all);
}

__attribute__((target("avx512f,avx512bf16"))) float dot_bf16_512(std::int64_t steps) {
  const auto ones = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f80));  // 1.0 in bf16
  __m512 sums[sums_of_32_registers];
#pragma GCC unroll 32
  for (int i = 0; i < sums_of_32_registers; ++i) sums[i] = _mm512_set1_ps(initial_sum(i));
  for (; steps > 0; --steps) {
#pragma GCC unroll 32
    for (auto& sum : sums) sum = _mm512_dpbf16_ps(sum, ones, ones);
  }
  __m512 all = _mm512_setzero_ps();
#pragma GCC unroll 32
  for (const auto& sum : sums) all = _mm512_add_ps(all, sum);
  return _mm512_cvtss_f32(all);
}
#endif

}  // namespace

InstructionPeak::Instruction InstructionPeak::multiply_add(const std::string& isa) {
#if defined(__x86_64__)
  const bool best = isa.empty();
  if (isa.starts_with("avx512") || (best && __builtin_cpu_supports("avx512f")))
    return {2.0 * 16 * sums_of_32_registers, multiply_add_512};
  if (isa == "avx2" || (best && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")))
    return {2.0 * 8 * sums_of_16_registers, multiply_add_256};
#else
  static_cast<void>(isa);
#endif
  return {2.0 * 4 * sums_of_16_registers, multiply_add_128};
}

InstructionPeak::InstructionPeak(int threads, Precision precision, const std::string& isa)
    : threads_(threads), instructions_{multiply_add(isa)} {
#if defined(__x86_64__)
  const bool allowed = isa.empty() || isa == "avx512_bf16";
  if (precision == Precision::bf16 && allowed && __builtin_cpu_supports("avx512bf16"))
    instructions_.push_back({4.0 * 16 * sums_of_32_registers, dot_bf16_512});
#else
  static_cast<void>(precision);
#endif
}

namespace {

double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

// The sum over the threads of their rates in processor time, which other processes do not lower.
double InstructionPeak::rate(const Instruction& instruction, std::int64_t steps) const {
  std::barrier start(threads_ + 1);
  std::vector<std::jthread> threads;
  struct Timed {
    float result = 0;
    double seconds = 0;
  };
  std::vector<Timed> timed(static_cast<std::size_t>(threads_));
  const auto run = [&](Timed& own) {
    start.arrive_and_wait();
    const double began = thread_seconds();
    own.result = instruction.run(steps);
    own.seconds = thread_seconds() - began;
  };
  try {
    for (Timed& own : timed) threads.emplace_back(run, std::ref(own));
  } catch (...) {  // no further thread can start: those that wait for it go on and are joined
    static_cast<void>(start.arrive(threads_ + 1 - std::ssize(threads)));
    threads.clear();  // joins: they use what is destroyed before `threads`
    throw;
  }
  start.arrive_and_wait();
  threads.clear();  // joins
  volatile float kept = timed[0].result;
  static_cast<void>(kept);
  double sum = 0;
  for (const Timed& own : timed)
    sum += instruction.flops * static_cast<double>(steps) / std::max(own.seconds, 1e-9);
  return sum;
}

void InstructionPeak::measure(std::int64_t steps) {
  for (const Instruction& instruction : instructions_)
    for (int i = 0; i < 5; ++i) best_ = std::max(best_, rate(instruction, steps));
}

}  // namespace troupe::engine::ops
