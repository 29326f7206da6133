// Compiled with AVX-512 and AVX-512-BF16; called only where the processor has all of them. Only
// what makes and multiplies pairs is made anew: what other files may share is left to
// kernels_avx512.cpp.
#include "engine/ops/cpu/kernels_int8.h"
#include "engine/ops/cpu/lanes_avx512.h"

namespace troupe::engine::ops {
namespace {

/// Pairs (kernels_panels.h) by the instructions that are made for them. Like the product, the
/// rounding takes subnormal values for zeros.
struct HardwarePairs : kernels::Pairs<avx512::Lanes> {
  using Lanes = avx512::Lanes;
  static constexpr int rows = 14;
  using Right = __m512bh;
  [[gnu::always_inline]] static Right right(const float* words) {
    return reinterpret_cast<__m512bh>(_mm512_loadu_ps(words));
  }
  [[gnu::always_inline]] static Lanes add(float left, Right right, Lanes sum) {
    return {_mm512_dpbf16_ps(sum.v, reinterpret_cast<__m512bh>(_mm512_set1_ps(left)), right)};
  }
  [[gnu::always_inline]] static Right whole(Lanes first, Lanes second) {
    return reinterpret_cast<__m512bh>(_mm512_or_si512(
        _mm512_castps_si512(first.v), _mm512_srli_epi32(_mm512_castps_si512(second.v), 16)));
  }
  /// The lower sixteen values from `low`.
  [[gnu::always_inline]] static __m512i rounded(Lanes low, Lanes high) {
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high.v, low.v));
  }
  [[gnu::always_inline]] static Lanes along(const float* from, std::int64_t count) {
    const bool whole = count >= 32;
    const Lanes x = whole ? Lanes::load(from) : Lanes::load(from, Lanes::first(count));
    const Lanes y = whole        ? Lanes::load(from + 16)
                    : count > 16 ? Lanes::load(from + 16, Lanes::first(count - 16))
                                 : Lanes::zero();
    return {_mm512_castsi512_ps(_mm512_rol_epi32(
        rounded(x, y), 16))};  // of two neighbours the first goes to the upper half
  }
  [[gnu::always_inline]] static Lanes across(const float* from, std::int64_t apart,
                                             std::int64_t depth, Lanes::Mask mask) {
    const Lanes first = Lanes::load(from, mask),
                second = depth > 1 ? Lanes::load(from + apart, mask) : Lanes::zero();
    return {_mm512_castsi512_ps(_mm512_permutexvar_epi16(interleaved(), rounded(second, first)))};
  }
  [[gnu::always_inline]] static __m512i interleaved() {  // 0, 16, 1, 17, ...
    const __m512i low = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_or_si512(low,
                           _mm512_slli_epi32(_mm512_add_epi32(low, _mm512_set1_epi32(16)), 16));
  }
};

}  // namespace

const Kernels& avx512_bf16_kernels() {
  static const Kernels table = [] {
    Kernels with = avx512_kernels();
    with.isa = "avx512_bf16";
    with.pairs = kernels::panels<avx512::Lanes, HardwarePairs>();
    with.whole = kernels::int8_panels<avx512::Lanes, HardwarePairs>();
    return with;
  }();
  return table;
}

}  // namespace troupe::engine::ops
