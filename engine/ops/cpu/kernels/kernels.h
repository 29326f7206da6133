// The table of single-threaded kernels that one instruction set provides. Pointers are raw and
// sizes unchecked: callers have checked them. Neither the thread that runs a kernel nor the part of
// a result that it computes changes a bit of the result.
#pragma once

#include <array>
#include <cstdint>

namespace troupe::engine::ops {
struct AdamW;
enum class Activation : std::uint8_t;
}  // namespace troupe::engine::ops

namespace troupe::engine::ops::cpu {

/// `count` <= width rows of A (or columns of B) of k values, to be packed as [k group][width]
/// elements; missing rows and values are zeros. With items_contiguous, value k of item i is
/// from[k * ld + i]; otherwise from[i * ld + k].
struct PackArgs {
  const float* from;
  std::int64_t ld, count, k, width;
  bool items_contiguous;
};

/// Prefetch distances of packing. Rows that are packed together lie in different pages, where the
/// hardware prefetcher does not look far enough ahead.
inline constexpr std::int64_t prefetch_values = 128, prefetch_rows = 16;

/// C [m, n] = or += a product of packed operands: A in tiles of at most GemmKernel::mr rows (the
/// last tile may be narrower), B in panels of GemmKernel::nr columns (the last panel is padded).
/// Packed elements have the size of a float, whatever they hold.
struct PackedGemm {
  std::int64_t m, n, k_groups, mr;
  const float *a, *b;
  float* c;
  std::int64_t ldc;
  bool accumulate;
  /// Memory that is read after this product. Tiles prefetch it while the memory bus is idle.
  const float* next = nullptr;
  std::int64_t next_lines = 0;
};
/// NR of the f32, bf16 and int8 kernels: columns of a panel.
inline constexpr std::int64_t panel_nr = 32;
/// n rounded up to whole panels.
constexpr std::int64_t padded_columns(std::int64_t n) {
  return (n + panel_nr - 1) / panel_nr * panel_nr;
}
/// KC of the f32, bf16 and int8 kernels, in packed elements. C is loaded and stored once per KC,
/// which costs more than reading a panel from the L2 cache.
inline constexpr std::int64_t panel_kc = 2048;

/// C [m, n] = or += A [m, k] B in f32. A has any strides; B has leading dimension `ldb`.
struct GemmArgs {
  std::int64_t m, n, k;
  const float* a;
  std::int64_t rs_a, cs_a;  ///< row stride and column stride of A
  const float* b;
  std::int64_t ldb;
  float* c;
  std::int64_t ldc;
  bool accumulate;
};
/// Largest m of an f32 product that reads B in place.
inline constexpr std::int64_t max_few_rows = 32;
/// Floats of scratch memory that gemm_nt and gemm_nn may use.
inline constexpr std::int64_t gemm_scratch = 192 * 1024;
/// KC of products of few rows.
inline constexpr std::int64_t few_rows_kc = 4096;
static_assert(max_few_rows * few_rows_kc <= gemm_scratch);

/// Packing and micro-kernel of one number format and order of summation (BLIS terms: MR, NR).
struct GemmKernel {
  std::int64_t mr;       ///< rows of a tile, at most
  std::int64_t nr;       ///< columns of a panel
  std::int64_t k_pack;   ///< values of k per packed element
  std::int64_t k_align;  ///< packed elements per row are a multiple of it
  std::int64_t k_split;  ///< k may be cut at multiples of it
  void (*pack)(const PackArgs&, float* to);
  void (*gemm)(const PackedGemm&);
  /// Packed elements of k values.
  std::int64_t k_groups(std::int64_t k) const {
    return (k + k_pack * k_align - 1) / (k_pack * k_align) * k_align;
  }
  /// n rounded up to whole panels.
  std::int64_t padded_n(std::int64_t n) const { return (n + nr - 1) / nr * nr; }
  /// Tile height for m rows. Tiles are of about equal height: 16 rows become two tiles of 8,
  /// because a tile of two rows would wait for its own sums.
  std::int64_t mr_for(std::int64_t m) const {
    const std::int64_t tiles = (m + mr - 1) / mr;
    return (m + tiles - 1) / tiles;
  }
};

/// Bytes of an int8 panel: its scales, and one k group of two values.
inline constexpr std::int64_t int8_scales = 4 * panel_nr, int8_group = 2 * panel_nr;
constexpr std::int64_t int8_panel(std::int64_t k_groups) {
  return int8_scales + k_groups * int8_group;
}

/// Int8 weights, for products whose A is packed as bf16.
struct Int8Kernel {
  void (*pack)(const PackArgs&, std::int8_t* panel);
  /// Converts an int8 panel to a bf16 panel, without the scales.
  void (*widen)(const std::int8_t* panel, std::int64_t k_groups, float* elements);
  void (*gemm)(const PackedGemm&);  ///< b: the first panel
};

/// The heads of one decoded row, each with its own keys (or values): `rows` [keys, heads * size]
/// with leading dimension `ld`; scores or weights [heads, keys] with leading dimension
/// `ld_weights`. The rows needed next are at offset `prefetch`.
struct DecodeHeads {
  std::int64_t heads, size, keys;
  const float* rows;
  std::int64_t ld, prefetch;
  float* weights;
  std::int64_t ld_weights;
};

/// Softmax statistics of z = x * factor, with e = exp(z - largest).
struct SoftmaxSums {
  float largest;    ///< max z
  double sum;       ///< sum of e
  double weighted;  ///< sum of e * (z - largest)
};

/// Backward inputs of one row of the LM head. logit = softcap * tanh(logit_scale * product /
/// softcap); inverse_cap is 1 / softcap, or 0 without a softcap.
struct LmHeadRow {
  float inv_temperature, lse, dlogp, dentropy, entropy;
  float logit_scale = 1, inverse_cap = 0;
  /// d logit / d product.
  float derivative(float logit) const {
    return logit_scale * (1 - logit * inverse_cap * (logit * inverse_cap));
  }
};

/// Dropout of one row: an element with a random word below `bound` becomes 0, others are multiplied
/// by `factor`.
struct DropoutRow {
  DropoutRow(double probability, std::uint64_t random_key, std::uint64_t id, std::uint32_t stream);
  std::array<std::uint32_t, 2> key;
  std::array<std::uint32_t, 3> counter;  ///< after the word that counts columns
  std::uint32_t bound;
  float factor;
};

/// Scalars of an AdamW update, each rounded to f32 once, as PyTorch does.
struct AdamWScalars {
  explicit AdamWScalars(const AdamW& how);
  float decay, one_minus_beta1, beta2, one_minus_beta2, sqrt_correction2, eps, step_size,
      grad_scale;
  bool clear_gradients;
};

struct Kernels {
  const char* isa;

  /// C = A B^T with B [n, k]. Each element is the sum of sixteen partial sums along k, in blocks of
  /// 512, joined by a fixed tree. So rounding errors of a row are small, and few rows read B in
  /// place.
  void (*gemm_nt)(const GemmArgs&, float* scratch);
  /// gemm_nt over k .. k + few_rows_kc - 1, for at most max_few_rows rows. `rows` holds the packed
  /// rows of A: they are written with `pack`, and read otherwise.
  void (*gemm_nt_few_rows)(const GemmArgs&, std::int64_t k, float* rows, bool pack);
  /// C = A B with B [k, n]. Each element is one chain of FMAs in the order of k, which continues
  /// from C when accumulating.
  void (*gemm_nn)(const GemmArgs&, float* scratch);
  /// scores = q [heads * size] k^T, each with the summation order of gemm_nt.
  void (*decode_scores)(const DecodeHeads&, const float* q);
  /// out [heads * size] = or += weights v, each with the summation order of gemm_nn.
  void (*decode_values)(const DecodeHeads&, float* out, bool add);
  /// The sums of gemm_nt, from packed operands.
  GemmKernel gemm_f32_dot;
  /// f32, and f32 rounded to bf16 (two values per packed element). Each element is one chain of
  /// FMAs in the order of k, which continues from C when accumulating: two micro-batches give the
  /// bits of one.
  GemmKernel gemm_f32, gemm_bf16;
  Int8Kernel gemm_int8;

  SoftmaxSums (*softmax_sums)(const float* x, std::int64_t n, float factor, bool weighted);
  SoftmaxSums (*softmax_in_place)(float* x, std::int64_t n, float factor);  ///< x becomes e
  /// scores become p = exp(scale * score - lse).
  void (*attention_weights)(float* scores, std::int64_t n, float scale, float lse);
  /// dp becomes scale * p * (dp - dot).
  void (*attention_dscores)(const float* p, float* dp, std::int64_t n, float dot, float scale);
  /// x becomes cap * tanh(factor * x / cap).
  void (*cap)(float* x, std::int64_t n, float factor, float cap);
  /// d becomes (d - dot) * the derivative of cap().
  void (*cap_backward)(const float* capped, float* d, std::int64_t n, float cap, float dot);
  /// scores[i] += slope * (first + i)
  void (*add_alibi_bias)(float* scores, std::int64_t n, float slope, std::int64_t first);
  /// Gradients of logits, without the term of the target.
  void (*lm_head_dlogits)(const float* logits, float* dlogits, std::int64_t n, const LmHeadRow&);

  float (*dot)(const float* a, const float* b, std::int64_t n);
  double (*mean_square)(const float* x, std::int64_t n);
  void (*rms_norm)(const float* x, const float* gain, float inverse, float* y, std::int64_t n);
  void (*rms_norm_dx)(const float* x, const float* gain, float inverse, const float* dy, float* dx,
                      std::int64_t n);
  /// dgain[i] += sum over rows of dy * x * inverse, for n columns of rows with stride `width`,
  /// added in the order of the rows.
  void (*rms_norm_dgain)(const float* x, const float* inverse, const float* dy, std::int64_t rows,
                         std::int64_t width, float* dgain, std::int64_t n);
  double (*mean)(const float* x, std::int64_t n);
  double (*variance)(const float* x, float mean, std::int64_t n);
  void (*layer_norm)(const float* x, const float* gain, const float* bias, float mean,
                     float inverse, float* y, std::int64_t n);
  void (*layer_norm_dx)(const float* x, const float* gain, float mean, float inverse,
                        const float* dy, float* dx, std::int64_t n);
  /// rms_norm_dgain() with x - mean in place of x.
  void (*layer_norm_dgain)(const float* x, const float* mean, const float* inverse, const float* dy,
                           std::int64_t rows, std::int64_t width, float* dgain, std::int64_t n);
  void (*column_sums)(const float* x, std::int64_t rows, std::int64_t width, float* sums,
                      std::int64_t n);
  void (*rope)(float* x, const float* cos, const float* sin, int heads, std::int64_t half,
               bool inverse);
  void (*gated)(Activation, const float* gate, const float* up, float* y, std::int64_t n);
  void (*gated_backward)(Activation, const float* gate, const float* up, const float* dy,
                         float* dgate, float* dup, float* y, std::int64_t n);
  void (*activate)(Activation, const float* x, float* y, std::int64_t n);
  void (*activate_backward)(Activation, const float* x, const float* dy, float* dx, std::int64_t n);
  /// Copies whole 64-byte lines with non-temporal stores: what is not read soon evicts nothing from
  /// the caches.
  void (*copy_lines)(const float* from, float* to, std::int64_t n);
  void (*add)(const float* a, const float* b, float* sum, std::int64_t n);
  void (*scale)(float* x, float factor, std::int64_t n);
  /// y = dropout of x, whose columns are numbered from `first`; y may be x.
  void (*dropout)(const DropoutRow&, std::uint64_t first, const float* x, float* y, std::int64_t n);
  void (*adamw)(float* p, float* g, float* m, float* v, const AdamWScalars&, std::int64_t n);
  double (*sum_of_squares)(const float* x, std::int64_t n);
  bool (*all_finite)(const float* x, std::int64_t n);
};

const Kernels& baseline_kernels();
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();
const Kernels& avx512_bf16_kernels();

/// Returns the kernels of the instruction set `isa`, or of the best one that this processor has if
/// `isa` is empty. Failure(usage) for an unknown name, Failure(unsupported) if the processor lacks
/// the named set.
const Kernels& kernels_for(const char* isa);

}  // namespace troupe::engine::ops::cpu
