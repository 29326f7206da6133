// Compiled with AVX-512 and AVX-512-BF16; called only if the processor has all of them. Replaces
// the kernels that pack and multiply bf16; the others are those of isa_avx512.cpp.
#include "engine/ops/cpu/gemm/micro_int8.h"
#include "engine/ops/cpu/simd/vec_avx512.h"

namespace troupe::engine::ops::cpu {
namespace {

/// Bf16Panel (micro_packed.h) with the bf16 instructions. Both the product and the rounding flush
/// subnormal values to zero.
struct HardwareBf16Panel : kernels::Bf16Panel<avx512::Vec> {
  using Vec = avx512::Vec;
  static constexpr int mr = 14;
  using Right = __m512bh;
  [[gnu::always_inline]] static Right right(const float* words) {
    return reinterpret_cast<__m512bh>(_mm512_loadu_ps(words));
  }
  [[gnu::always_inline]] static Vec add(float left, Right right, Vec sum) {
    return {_mm512_dpbf16_ps(sum.v, reinterpret_cast<__m512bh>(_mm512_set1_ps(left)), right)};
  }
  [[gnu::always_inline]] static Right whole(Vec first, Vec second) {
    return reinterpret_cast<__m512bh>(_mm512_or_si512(
        _mm512_castps_si512(first.v), _mm512_srli_epi32(_mm512_castps_si512(second.v), 16)));
  }
  /// Rounds 32 values to bf16: the lower sixteen from `low`.
  [[gnu::always_inline]] static __m512i rounded(Vec low, Vec high) {
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high.v, low.v));
  }
  [[gnu::always_inline]] static Vec along(const float* from, std::int64_t count) {
    const bool whole = count >= 32;
    const Vec x = whole ? Vec::load(from) : Vec::load(from, Vec::first(count));
    const Vec y = whole        ? Vec::load(from + 16)
                  : count > 16 ? Vec::load(from + 16, Vec::first(count - 16))
                               : Vec::zero();
    // The first of two neighbours goes to the upper half.
    return {_mm512_castsi512_ps(_mm512_rol_epi32(rounded(x, y), 16))};
  }
  [[gnu::always_inline]] static Vec across(const float* from, std::int64_t ld, std::int64_t depth,
                                           Vec::Mask mask) {
    const Vec first = Vec::load(from, mask),
              second = depth > 1 ? Vec::load(from + ld, mask) : Vec::zero();
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
  static const Kernels kernels = [] {
    Kernels table = avx512_kernels();
    table.isa = "avx512_bf16";
    table.gemm_bf16 = kernels::panel_kernel<avx512::Vec, HardwareBf16Panel>();
    table.gemm_int8 = kernels::int8_kernel<avx512::Vec, HardwareBf16Panel>();
    return table;
  }();
  return kernels;
}

}  // namespace troupe::engine::ops::cpu
