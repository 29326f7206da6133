// Device: the whole porting surface. About 25 fused kernels; a new kind of hardware implements
// these and nothing else. engine/ops/cpu has two: the reference (Eigen, plain, the oracle) and the
// fast one (own kernels, one set per CPU feature).
//
// Axis letters: T packed rows (tokens), N sequences, D width, H query heads, G key/value heads, K
// head size, F inner width, V vocabulary. Everything is row-major f32 unless said otherwise.
// Results of a row never depend on the other rows of the call, on their number, or on the number of
// threads: that makes decoding bit-identical to a full forward pass. Gradients of parameters are
// added to what is there; all other results are assigned. Shapes that do not fit are a Bug.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/tensor/tensor.h"

namespace troupe::engine::ops {

/// How the inputs of a product are rounded before they are multiplied; sums are always f32.
enum class Precision : std::uint8_t { f32, bf16 };

/// C = op(A) op(B), or C += with `accumulate`; op transposes where asked. Each element of C is one
/// sum in a fixed order.
struct Gemm {
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  Precision precision = Precision::f32;
};

/// One product of Device::grouped_gemm().
struct GemmCall {
  Tensor a, b, c;
  Gemm how;
};

/// How the rows of a batch form sequences.
struct Layout {
  std::vector<std::int32_t> offsets;  ///< [N+1] sequence n is rows offsets[n] .. offsets[n+1]
  std::vector<std::int32_t>
      positions;  ///< [T] place of each row in its sequence; without a cache it counts 0, 1, 2, ...
  std::int32_t rows() const { return offsets.empty() ? 0 : offsets.back(); }
  std::int32_t sequences() const { return static_cast<std::int32_t>(offsets.size()) - 1; }
};

/// Keys and values that a batch attends to. Without pages, key j of sequence n is row offsets[n] +
/// j of `k` (training); with pages it is row pages[n][j / page_size] * page_size + j % page_size of
/// a cache (generation). Row t sees keys 0 .. positions[t], or the last of them where the attention
/// has a window.
struct KeyValues {
  Tensor k, v;                                       ///< [rows, G*K]
  int page_size = 0;                                 ///< 0: no pages
  std::span<const std::vector<std::int32_t>> pages;  ///< [N] page numbers of each sequence
};

struct AttentionShape {
  int heads = 1;      ///< H
  int kv_heads = 1;   ///< G, divides H: grouped-query attention (Ainslie et al. 2023)
  int head_size = 1;  ///< K
  float scale = 1;    ///< multiplies q.k, usually 1/sqrt(K)
  float softcap = 0;  ///< scores become softcap * tanh(score / softcap) (Gemma 2); 0: they stay
  int window = 0;  ///< a row at position p sees keys p - window + 1 .. p (Beltagy et al. 2020); 0:
                   ///< all up to p
  std::vector<float> slopes = {};  ///< [H] or none: slope * (j - p) is added to the score of key j
                                   ///< (ALiBi, Press et al. 2021)
};

/// silu(x) = x / (1 + exp(-x)); gelu(x) = x Phi(x), Phi the normal distribution (Hendrycks & Gimpel
/// 2016), exactly or by its tanh formula.
enum class Activation : std::uint8_t { silu, gelu, gelu_tanh };

/// One decoupled AdamW update (Loshchilov & Hutter 2019, alg. 2), as torch.optim.AdamW computes it.
struct AdamW {
  double learning_rate = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  std::int64_t step = 1;         ///< counts from 1: bias correction
  float grad_scale = 1;          ///< gradients are multiplied by this first (clipping)
  bool clear_gradients = false;  ///< they become 0 once they are used
};

/// What stands between the products of the vocabulary head and its softmax: z = cap(logit_scale *
/// product) * inv_temperature with cap(x) = softcap * tanh(x / softcap), or x where softcap is 0.
struct HeadScale {
  float inv_temperature = 1;
  float logit_scale = 1;
  float softcap = 0;
  bool changes_logits() const { return logit_scale != 1 || softcap != 0; }
};

/// Two targets of the vocabulary head that are no token. A row without a target is skipped. A row
/// whose target is elsewhere, in another rank's part of the vocabulary, has its lse, its entropy
/// and the softmax's part of its gradients, all over the rows of this weight; its logp is 0 and its
/// gradients lack the target's own term.
inline constexpr std::int32_t no_target = -1, target_elsewhere = -2;

/// Which elements a dropout lets go (Srivastava et al. 2014). Element (row, column) is kept or not
/// by `key`, `stream`, its row's name and its column alone, whatever batch, micro-batch or part of
/// a matrix it lies in.
struct Dropout {
  double probability = 0;               ///< of being let go, below 1
  std::uint64_t key = 0;                ///< of the run and the update
  std::uint32_t stream = 0;             ///< of the module
  std::span<const std::uint64_t> rows;  ///< [T]
  std::int64_t first_column = 0;        ///< the place of column 0 in the whole matrix
};

/// By what chance elements are rounded (Gupta et al. 2015, arXiv:1502.02551). Element (i, j) of a
/// matrix, or i of a vector with j = 0, is number first + i * pitch + j, and its chance is of
/// `key`, `stream` and that number alone.
struct StochasticRounding {
  std::uint64_t key = 0;     ///< of the run and the update
  std::uint32_t stream = 0;  ///< of the parameter
  std::int64_t first = 0, pitch = 0;
};

/// The adapter of a vocabulary head: the product is weight.hidden + up.down. All absent: none.
struct HeadAdapter {
  Tensor down;        ///< [T, R]
  Tensor up;          ///< [V, R]
  Tensor ddown, dup;  ///< in head_backward: [T, R] assigned, [V, R] added
};

/// Writes the elements of a flattened tensor from `begin` on. It is asked for parts in any order,
/// from several threads at once, and does not throw.
using Source = std::function<void(std::int64_t begin, std::span<float> into)>;

/// Reads row `row` of a matrix. It is given the rows in any order, several at once from threads of
/// their own, and does not throw.
using RowVisitor = std::function<void(std::int64_t row, std::span<const float> values)>;

/// Bytes of a device's memory.
struct MemoryUse {
  std::size_t now = 0;   ///< that tensors and scratch memory lie in
  std::size_t peak = 0;  ///< the most that this ever was
  std::size_t held = 0;  ///< taken from the system: those of `now`, and what waits to be used again
};

class Device {
 public:
  virtual ~Device() = default;

  // Memory. `empty` leaves values undefined.
  virtual Tensor empty(Shape shape, DType type = DType::f32) = 0;
  virtual void upload(Tensor& to, std::span<const float> values) = 0;
  /// The same of values that lie nowhere yet; `to` is f32. Where memory is the host's, they are
  /// written where they belong.
  virtual void upload_from(Tensor& to, const Source& source) = 0;
  virtual void download(const Tensor& from, std::span<float> values) = 0;
  /// Every row of `from` [M, N] on the host, for as long as its visit takes; f32. Where memory is
  /// the host's, nothing is copied.
  virtual void visit_rows(const Tensor& from, const RowVisitor& visit) = 0;
  virtual void fill(Tensor& x, float value) = 0;
  virtual void copy(const Tensor& from, Tensor& to) = 0;  ///< same count
  virtual void synchronize() = 0;
  virtual MemoryUse memory() const = 0;

  // Products. A [M, K] or transposed [K, M]; B [K, N] or transposed [N, K]; C [M, N].
  virtual void gemm(const Tensor& a, const Tensor& b, Tensor& c, Gemm how) = 0;
  /// Products one after the other, none of which reads what another one writes. Where all have the
  /// same A (several layers of one input), the same B with A transposed (their weights' gradients)
  /// or the same C, to which all but the first add (their input's), a device may read what they
  /// share once. The bits are those of gemm().
  virtual void grouped_gemm(std::span<GemmCall> calls);
  /// `packed` becomes weight [N, K] as products x W^T in bf16 read it in the weight's place, in
  /// less time where x has few rows. It is absent, or was made of a weight of this shape and for
  /// the same type:
  ///   bf16_packed  rounded to bf16, as those products round it: the same bits
  ///   int8_packed  whole numbers q from -127 to 127 and a scale for each of its N rows: scale =
  ///   largest |w| / 127, q = w (127 / largest)
  ///                in f32, rounded to nearest, ties to even. x W^T becomes (x q^T) scale: q loses
  ///                nothing in bf16. Such a product does not accumulate. A row below 2^-100 becomes
  ///                zeros; one that is not finite gives not-a-number.
  virtual void pack(const Tensor& weight, DType type, Tensor& packed) = 0;
  virtual void add_bias(Tensor& y, const Tensor& bias) = 0;  ///< y [T, F] += bias [F]
  virtual void bias_backward(const Tensor& dy,
                             Tensor& dbias) = 0;  ///< dbias [F] += sum over rows of dy
  virtual void add(const Tensor& a, const Tensor& b,
                   Tensor& sum) = 0;  ///< elementwise; `sum` may be a or b
  virtual void scale(Tensor& x, float factor) = 0;

  // What adapters add. x, y [T, F].
  virtual void dropout(const Tensor& x, const Dropout& how,
                       Tensor& y) = 0;  ///< y = x / (1 - probability) or 0; y may be x
  virtual void scale_columns(Tensor& x, const Tensor& factors) = 0;  ///< x[t, f] *= factors[f]
  virtual void column_dots(const Tensor& a, const Tensor& b,
                           Tensor& sums) = 0;  ///< sums[f] += sum over t of a[t, f] * b[t, f]
  virtual void row_squares(const Tensor& x,
                           Tensor& sums) = 0;  ///< sums[t] = sum over f of x[t, f]^2, in f64

  // Rows. rows[i] < 0 gives a row of zeros in gather_rows and is skipped in scatter_rows.
  virtual void gather_rows(const Tensor& from, std::span<const std::int32_t> rows,
                           Tensor& to) = 0;  ///< to[i] = from[rows[i]]
  virtual void scatter_rows(const Tensor& from, std::span<const std::int32_t> rows,
                            Tensor& to) = 0;  ///< to[rows[i]] = from[i]
  /// table[rows[i]] += from[i], in the order of i (the gradient of an embedding).
  virtual void scatter_add_rows(const Tensor& from, std::span<const std::int32_t> rows,
                                Tensor& table) = 0;

  /// y = x * inv_rms * (offset + gain), inv_rms[t] = 1 / sqrt(mean(x[t]^2) + eps)   (Zhang &
  /// Sennrich 2019). x, y [T, D], gain [D].
  virtual void rms_norm(const Tensor& x, const Tensor& gain, float eps, Tensor& y, Tensor& inv_rms,
                        float offset = 0) = 0;
  virtual void rms_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& inv_rms,
                                 const Tensor& dy, Tensor& dx, Tensor& dgain, float offset = 0) = 0;
  /// y = (x - mean) * inv_std * gain + bias with the mean and 1 / sqrt(variance + eps) of each row
  /// (Ba et al. 2016). x, y [T, D], gain [D], bias [D] or absent; mean, inv_std [T].
  virtual void layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, float eps,
                          Tensor& y, Tensor& mean, Tensor& inv_std) = 0;
  /// dx assigned, dgain added. The bias has bias_backward.
  virtual void layer_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& mean,
                                   const Tensor& inv_std, const Tensor& dy, Tensor& dx,
                                   Tensor& dgain) = 0;

  /// Rotates pairs (i, i + K/2) of every head of x [T, heads*K] in place by the angle of
  /// positions[t]; cos, sin are [P, K/2] tables indexed by position (Su et al. 2021, half-split
  /// layout of the Hugging Face checkpoints). `inverse` rotates back (backward).
  virtual void rope(Tensor& x, std::span<const std::int32_t> positions, const Tensor& cos,
                    const Tensor& sin, int heads, bool inverse) = 0;

  /// out[t] = softmax(score) v over the keys of its own sequence that row t sees, with score =
  /// cap(scale * q[t].k) + slope * (j - p) as `shape` says. Keys outside a window are not visited.
  /// q, out [T, H*K]; lse [T, H] (log of the softmax's denominator, kept for backward; may be
  /// absent). In bf16 q, k, v and the weights e = exp(score - the row's largest) are rounded before
  /// they are multiplied; the denominator is the sum of e as they were.
  virtual void attention(const Tensor& q, const KeyValues& kv, const Layout& layout,
                         const AttentionShape& shape, Precision precision, Tensor& out,
                         Tensor* lse) = 0;
  /// Gradients for the case without pages. dq, dk, dv are assigned. In bf16 q, k, v, dout, the
  /// softmax p and the gradients of products q.k are rounded before they are multiplied.
  virtual void attention_backward(const Tensor& q, const KeyValues& kv, const Layout& layout,
                                  const AttentionShape& shape, Precision precision,
                                  const Tensor& out, const Tensor& lse, const Tensor& dout,
                                  Tensor& dq, Tensor& dk, Tensor& dv) = 0;

  /// y = activation(gate) * up (Shazeer 2020). All [T, F]; dgate may be gate, and dup may be up.
  /// gated_backward() makes y again where it is given, with the same bits; it may be dy.
  virtual void gated(Activation activation, const Tensor& gate, const Tensor& up, Tensor& y) = 0;
  virtual void gated_backward(Activation activation, const Tensor& gate, const Tensor& up,
                              const Tensor& dy, Tensor& dgate, Tensor& dup,
                              Tensor* y = nullptr) = 0;
  /// y = activation(x). All [T, F]; y may be x, and dx may be dy.
  virtual void activate(Activation activation, const Tensor& x, Tensor& y) = 0;
  virtual void activate_backward(Activation activation, const Tensor& x, const Tensor& dy,
                                 Tensor& dx) = 0;

  /// The fused vocabulary head: from hidden states [T, D] and weight [V, D], with z of
  /// weight.hidden as HeadScale says: logp[t] = z[targets[t]] - lse[t] and, where wanted,
  /// entropy[t] = lse - sum_v p_v z_v. A row of no_target is skipped: its logp, lse, entropy and
  /// gradients are 0. For target_elsewhere see there. Logits are made and forgotten block by block;
  /// only where `kept` is given it becomes what a device makes of those of the rows that are not
  /// skipped, or of the first of them where they are many, for head_backward, which need not make
  /// these again then; absent: of none.
  virtual void head(const Tensor& hidden, const Tensor& weight,
                    std::span<const std::int32_t> targets, const HeadScale& scale,
                    Precision precision, Tensor& logp, Tensor& lse, Tensor* entropy,
                    const HeadAdapter* adapter = nullptr, Tensor* kept = nullptr) = 0;
  /// dhidden [T, D] assigned (without the adapter's part), dweight [V, D] added, or assigned unless
  /// `accumulate`, or absent for a frozen weight. dlogp, dentropy [T] (dentropy may be absent). lse
  /// and entropy are those of the whole vocabulary, also where the weight is a part of it.
  virtual void head_backward(const Tensor& hidden, const Tensor& weight,
                             std::span<const std::int32_t> targets, const HeadScale& scale,
                             Precision precision, const Tensor& lse, const Tensor& dlogp,
                             const Tensor* dentropy, const Tensor* entropy, Tensor& dhidden,
                             Tensor& dweight, HeadAdapter* adapter = nullptr,
                             const Tensor* kept = nullptr, bool accumulate = true) = 0;
  /// head() and head_backward() at once and with their bits, where the derivatives are known before
  /// what they are of: logits are made once.
  virtual void head_through(const Tensor& hidden, const Tensor& weight,
                            std::span<const std::int32_t> targets, const HeadScale& scale,
                            Precision precision, const Tensor& dlogp, const Tensor* dentropy,
                            Tensor& logp, Tensor& lse, Tensor* entropy, Tensor& dhidden,
                            Tensor& dweight, HeadAdapter* adapter = nullptr,
                            bool accumulate = true);
  /// Products [M, V] of head() become its logits at temperature 1, cap(logit_scale * product), with
  /// its bits: generation stores them.
  virtual void scale_logits(Tensor& logits, const HeadScale& scale) = 0;
  /// The same arithmetic from stored logits [M, V] (generation): logp of targets [M], bit-identical
  /// to head(). A target that is no token gives logp 0; its lse is still computed.
  virtual void token_logprob(const Tensor& logits, std::span<const std::int32_t> targets,
                             float inv_temperature, Tensor& logp, Tensor& lse) = 0;

  // The optimizer, over flat ranges of one arena.
  virtual void adamw(Tensor& values, Tensor& grads, Tensor& m, Tensor& v, const AdamW& how) = 0;
  /// x [M, N] or [M] becomes bf16: of the two nearest values the upper one with the probability
  /// with which the mean stays x.
  virtual void round_to_bf16(Tensor& x, const StochasticRounding& how) = 0;
  virtual double sum_of_squares(const Tensor& x) = 0;  ///< f64, in a fixed order
  virtual bool all_finite(const Tensor& x) = 0;
};

/// All values of a tensor, after synchronising.
std::vector<float> to_host(Device& device, const Tensor& from);
Tensor from_host(Device& device, Shape shape, std::span<const float> values);

/// Plain loops and Eigen on one thread: the oracle.
std::unique_ptr<Device> make_reference_device();

/// Columns of the vocabulary whose gradients the way back through the head holds at a time, packed.
inline constexpr std::int64_t head_columns = 896;
/// Words of the head's weight that are packed at a time for the gradients of hidden states: 128
/// MiB.
inline constexpr std::int64_t head_weight_words = std::int64_t{32} << 20;

/// Words of an operand, or of those of a group of products, that are packed beforehand: 128 MiB.
inline constexpr std::int64_t most_packed_words = std::int64_t{32} << 20;

struct CpuOptions {
  int threads = 0;           ///< 0: as many as the process may use
  bool pin_threads = false;  ///< each on a processor of its own, where the process may use just as
                             ///< many; elsewhere a warning says why not
  /// Highest instruction set to use: "", "baseline", "avx2", "avx512", "avx512_bf16". Empty: the
  /// best that the processor has.
  const char* isa = "";
  /// Logits that head_through keeps at a time; head_rows() says of how many rows.
  std::int64_t head_logits = 36'000'000;
  /// Logits that head() keeps for the way back at most, those of the first rows: 320 MB, which is a
  /// micro-batch of 2500 tokens at 32000 words.
  std::int64_t kept_logits = 80'000'000;
};
/// Of a vocabulary beyond 70 thousand as many rows as of one of 70 thousand: few at a time read and
/// write the weight's gradient too often.
constexpr std::int64_t head_rows(std::int64_t vocabulary, std::int64_t logits) {
  return logits / (vocabulary < 70'000 ? vocabulary : 70'000);
}
/// The fast device. Results are the same bits for any number of threads, and for avx2, avx512 and
/// avx512_bf16 (which makes sums of bf16 products below 2^-126 zero).
std::unique_ptr<Device> make_cpu_device(CpuOptions options = {});

}  // namespace troupe::engine::ops
