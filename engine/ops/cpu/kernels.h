// The table of single-threaded kernels that one instruction set provides. Raw pointers, checked
// sizes: callers have looked. Which thread runs a kernel, and on which part of a result, never
// changes a bit of it.
#pragma once

#include <cstdint>

namespace troupe::engine::ops {

/// `count` <= width items (rows of A, columns of B) of `depth` values of k, to be packed as
/// [step][width] words; missing items and values are zeros. Items are `apart` and the values of
/// each lie together, or the other way round.
struct Packing {
  const float* from;
  std::int64_t apart, count, depth, width;
  bool items_together;
};

/// Rows that are packed together lie in different pages, where the processor's own prefetching does
/// not look far enough.
inline constexpr std::int64_t values_ahead = 128, rows_ahead = 16;

/// C [m, n] = or += a product of packed operands: A in tiles of at most Panels::rows rows (the last
/// one perhaps narrower), B in panels of Panels::columns columns, the last one filled up. Words are
/// kept as floats, whatever they hold.
struct PanelProduct {
  std::int64_t m, n, steps, rows;
  const float *a, *b;
  float* c;
  std::int64_t ldc;
  bool accumulate;
  /// What is read after this product, from memory: tiles may have it fetched, while memory has
  /// nothing else to do.
  const float* next = nullptr;
  std::int64_t next_lines = 0;
};
/// Of panels that a tile's rows are broadcast against.
inline constexpr std::int64_t panel_columns = 32;
/// n columns fill this many of theirs.
constexpr std::int64_t panels_width(std::int64_t n) {
  return (n + panel_columns - 1) / panel_columns * panel_columns;
}
/// Words of k at a time: elements of C are loaded and stored once for each, which costs more than
/// reading a panel from the second-level cache.
inline constexpr std::int64_t panel_depth = 2048;

/// C [m, n] = or += A [m, k] B in f32, with A at any strides and B in rows that are `ldb` apart.
struct Product {
  std::int64_t m, n, k;
  const float* a;
  std::int64_t a_row, a_k;  ///< distance between rows of A, and between consecutive k
  const float* b;
  std::int64_t ldb;
  float* c;
  std::int64_t ldc;
  bool accumulate;
};
/// Products in f32 of so many rows read the other operand where it lies.
inline constexpr std::int64_t most_direct_rows = 32;
/// Floats of scratch that it may use.
inline constexpr std::int64_t product_scratch = 192 * 1024;
/// Columns of such rows that are held at once.
inline constexpr std::int64_t direct_depth = 4096;
static_assert(most_direct_rows * direct_depth <= product_scratch);

/// Products of packed operands of one kind of number and order of summation.
struct Panels {
  std::int64_t rows;      ///< of a tile, at most
  std::int64_t columns;   ///< of a panel
  std::int64_t step;      ///< values of k in a word
  std::int64_t together;  ///< words of an item are a multiple of it
  std::int64_t part;      ///< of k: parts that are packed one by one are multiples of it
  void (*pack)(const Packing&, float* to);
  void (*product)(const PanelProduct&);
  /// Words of an item of k values.
  std::int64_t steps(std::int64_t k) const {
    return (k + step * together - 1) / (step * together) * together;
  }
  /// n columns fill this many of its panels.
  std::int64_t width(std::int64_t n) const { return (n + columns - 1) / columns * columns; }
  /// The height of the tiles of m rows. All of about one height: of 16 rows two times 8, as a tile
  /// of two would wait for its own sums.
  std::int64_t tile(std::int64_t m) const {
    const std::int64_t tiles = (m + rows - 1) / rows;
    return (m + tiles - 1) / tiles;
  }
};

/// A panel of whole numbers: so many bytes of scales, and of each step.
inline constexpr std::int64_t int8_scales = 4 * panel_columns, int8_step = 2 * panel_columns;
constexpr std::int64_t int8_panel(std::int64_t steps) {
  return int8_scales + steps * int8_step;
}

/// Weights of whole numbers, for products whose other operand is packed in pairs.
struct Int8Panels {
  void (*pack)(const Packing&, std::int8_t* panel);
  void (*widen)(const std::int8_t* panel, std::int64_t steps,
                float* words);           ///< to a panel of pairs, without its scales
  void (*product)(const PanelProduct&);  ///< b: the first panel
};

/// Heads of one row, each with keys (or values) of its own: `rows` [keys, heads * size], `apart`
/// from one to the next, and their products or weights [heads, keys], `pitch` apart. Rows that will
/// be wanted next stand `ahead` of these.
struct RowHeads {
  std::int64_t heads, size, keys;
  const float* rows;
  std::int64_t apart, ahead;
  float* weights;
  std::int64_t pitch;
};

/// Of z = x * factor: the largest z, and sums over e = exp(z - largest).
struct SoftmaxSums {
  float largest;
  double sum;       ///< of e
  double weighted;  ///< of e * (z - largest)
};

/// The upstream of one row of the vocabulary head, and how its logits came from products: capped /
/// cap is their share of the cap.
struct HeadRow {
  float inv_temperature, lse, dlogp, dentropy, entropy;
  float logit_scale = 1, inverse_cap = 0;
  /// How a logit rises with its product.
  float slope(float logit) const {
    return logit_scale * (1 - logit * inverse_cap * (logit * inverse_cap));
  }
};

struct AdamW;
enum class Activation : std::uint8_t;

/// The scalars of an AdamW update, each rounded to f32 once, as torch does.
struct AdamWScalars {
  explicit AdamWScalars(const AdamW& how);
  float decay, one_minus_beta1, beta2, one_minus_beta2, sqrt_correction2, eps, step_size,
      grad_scale;
  bool clear_gradients;
};

struct Kernels {
  const char* isa;

  /// B is [n, k]: each element is sixteen running sums along k, in blocks of 512, each block's
  /// joined by one fixed tree. So the roundings in a row are few, and few rows read B where it
  /// lies.
  void (*dot_product)(const Product&, float* scratch);
  /// The part of it from k on, direct_depth long, for most_direct_rows rows at most. They are left
  /// in `rows` as it wants them, or lie there.
  void (*direct_product)(const Product&, std::int64_t k, float* rows, bool pack);
  /// B is [k, n]: each element is one chain of multiply-adds in the order of k, which continues
  /// from C when accumulating.
  void (*outer_product)(const Product&, float* scratch);
  /// weights = products of q [heads * size] with keys, each as dot_product's.
  void (*row_scores)(const RowHeads&, const float* q);
  /// out [heads * size] = or += weights times values, each as outer_product's.
  void (*row_values)(const RowHeads&, float* out, bool add);
  /// dot_product's sums, from packed operands.
  Panels dots;
  /// f32 and f32 rounded to bf16, two to a word. Each element is one chain of multiply-adds in the
  /// order of k, which continues from C when accumulating: two micro-batches give the bits of one.
  Panels singles, pairs;
  Int8Panels whole;

  SoftmaxSums (*softmax_sums)(const float* x, std::int64_t n, float factor, bool weighted);
  SoftmaxSums (*softmax_in_place)(float* x, std::int64_t n, float factor);  ///< x becomes e
  void (*attention_weights)(float* scores, std::int64_t n, float scale,
                            float lse);  ///< scores become p
  void (*attention_dscores)(const float* p, float* dp, std::int64_t n, float dot,
                            float scale);  ///< dp becomes scale * dscore
  void (*cap)(float* x, std::int64_t n, float factor,
              float cap);  ///< x becomes cap * tanh(factor * x / cap)
  void (*cap_backward)(const float* capped, float* d, std::int64_t n, float cap,
                       float dot);  ///< d becomes (d - dot) * the cap's slope
  void (*tilt)(float* scores, std::int64_t n, float slope,
               std::int64_t first);  ///< scores[i] += slope * (first + i)
  void (*head_dlogits)(const float* logits, float* slopes, std::int64_t n,
                       const HeadRow&);  ///< without the target's own term

  float (*dot)(const float* a, const float* b, std::int64_t n);
  double (*mean_square)(const float* x, std::int64_t n);
  void (*rms_norm)(const float* x, const float* gain, float inverse, float* y, std::int64_t n);
  void (*rms_norm_dx)(const float* x, const float* gain, float inverse, const float* dy, float* dx,
                      std::int64_t n);
  /// dgain[i] += sum over rows of dy * x * inverse, for n columns of rows that are `width` apart; a
  /// chain in the order of the rows.
  void (*rms_norm_dgain)(const float* x, const float* inverse, const float* dy, std::int64_t rows,
                         std::int64_t width, float* dgain, std::int64_t n);
  double (*mean)(const float* x, std::int64_t n);
  double (*variance)(const float* x, float middle, std::int64_t n);  ///< the mean of (x - middle)^2
  void (*layer_norm)(const float* x, const float* gain, const float* bias, float middle,
                     float inverse, float* y, std::int64_t n);
  void (*layer_norm_dx)(const float* x, const float* gain, float middle, float inverse,
                        const float* dy, float* dx, std::int64_t n);
  void (*layer_norm_dgain)(const float* x, const float* mean, const float* inverse, const float* dy,
                           std::int64_t rows, std::int64_t width, float* dgain,
                           std::int64_t n);  ///< as rms_norm_dgain, of (x - mean) * inverse
  void (*column_sums)(const float* x, std::int64_t rows, std::int64_t width, float* sums,
                      std::int64_t n);
  void (*rope)(float* x, const float* cos, const float* sin, int heads, std::int64_t half,
               bool inverse);
  void (*gated)(Activation, const float* gate, const float* up, float* y, std::int64_t n);
  void (*gated_backward)(Activation, const float* gate, const float* up, const float* dy,
                         float* dgate, float* dup, float* y, std::int64_t n);
  void (*activate)(Activation, const float* x, float* y, std::int64_t n);
  void (*activate_backward)(Activation, const float* x, const float* dy, float* dx, std::int64_t n);
  /// Whole lines of sixteen to where a line begins, past the caches: what will not be read soon
  /// drives nothing out of them.
  void (*copy_lines)(const float* from, float* to, std::int64_t n);
  void (*add)(const float* a, const float* b, float* sum, std::int64_t n);
  void (*scale)(float* x, float factor, std::int64_t n);
  void (*adamw)(float* p, float* g, float* m, float* v, const AdamWScalars&, std::int64_t n);
  double (*sum_of_squares)(const float* x, std::int64_t n);
  bool (*all_finite)(const float* x, std::int64_t n);
};

const Kernels& baseline_kernels();
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();
const Kernels& avx512_bf16_kernels();

/// The kernels of the highest set that is no higher than `isa` ("": no limit) and that this
/// processor has. Failure(usage) for an unknown name, Failure(unsupported) when the processor lacks
/// the named set.
const Kernels& kernels_for(const char* isa);

}  // namespace troupe::engine::ops
