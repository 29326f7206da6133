// Compiled with AVX-512 and AVX-512-BF16; called only where the processor has all of them. Only the products of pairs are made anew: what
// other files may share is left to kernels_avx512.cpp.
#include "engine/ops/cpu/kernels_panels.h"
#include "engine/ops/cpu/lanes_avx512.h"

namespace troupe::engine::ops {
namespace {

/// Pairs (kernels_panels.h) by the instruction that is made for them.
struct HardwarePairs : kernels::Pairs<avx512::Lanes> {
  static constexpr int rows = 14;
  using Right = __m512bh;
  [[gnu::always_inline]] static Right right(const float* words) { return reinterpret_cast<__m512bh>(_mm512_loadu_ps(words)); }
  [[gnu::always_inline]] static avx512::Lanes add(float left, Right right, avx512::Lanes sum) {
    return {_mm512_dpbf16_ps(sum.v, reinterpret_cast<__m512bh>(_mm512_set1_ps(left)), right)};
  }
};

}  // namespace

const Kernels& avx512_bf16_kernels() {
  static const Kernels table = [] {
    Kernels with = avx512_kernels();
    with.isa = "avx512_bf16";
    with.pairs = kernels::panels<avx512::Lanes, HardwarePairs>();
    return with;
  }();
  return table;
}

}  // namespace troupe::engine::ops
