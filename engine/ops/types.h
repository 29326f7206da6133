// Argument and option types of Device.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/ops/memory/memory_use.h"
#include "engine/tensor/tensor.h"

namespace troupe::engine::ops {

/// Rounding of the inputs of a product. Sums are always f32. f16 (IEEE 754 binary16): inputs of
/// GEMMs and of the LM head are rounded, a value of 65520 or more becomes infinite; attention is
/// computed as in f32.
enum class Precision : std::uint8_t { f32, bf16, f16 };
constexpr std::array<std::string_view, 3> names_of(Precision) {
  return {"f32", "bf16", "f16"};
}

/// Options of C = op(A) op(B), or C += op(A) op(B) with `accumulate`. op() transposes if the flag
/// is set. Each element of C is one sum in a fixed order.
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

/// Division of the rows of a batch into sequences.
struct Layout {
  std::vector<std::int32_t> offsets;  ///< [N+1] sequence n is rows offsets[n] .. offsets[n+1]
  /// [T] position of each row in its sequence; without a cache 0, 1, 2, ...
  std::vector<std::int32_t> positions;
  std::int32_t rows() const { return offsets.empty() ? 0 : offsets.back(); }
  std::int32_t sequences() const { return static_cast<std::int32_t>(offsets.size()) - 1; }
};

/// Numbers for the kernels of a device, which Device::indices() and row_ids() make, once for all
/// calls that read them. Shapes are checked and work is divided on the host.
template <class T>
struct DeviceList {
  std::vector<T> host;
  Tensor device;  ///< absent where kernels read the memory of the host
};
using Indices = DeviceList<std::int32_t>;  ///< of rows, positions or tokens
using RowIds = DeviceList<std::uint64_t>;

/// Pages of a cache of keys and values: key j of sequence n is row numbers[n][j / size] * size + j
/// % size of it.
struct Pages {
  int size = 0;                                        ///< 0: no pages
  std::span<const std::vector<std::int32_t>> numbers;  ///< [N] of each sequence
};

/// A layout as the operations of all layers of a pass read it, made once by Device::prepare().
struct PreparedLayout : Layout {
  Pages pages;
  Indices row_positions;  ///< [T] positions
  Indices cache_rows;     ///< [T] with pages: the row of the cache for the keys of each row
};

/// Keys first .. end - 1 of a sequence, in rows row, row + 1, ... of `k` and `v`; `first` is even.
struct KeyBlock {
  std::int64_t first, end, row;
};

/// Keys and values that a batch attends to. Without pages of its layout, key j of sequence n is row
/// offsets[n] + j of `k` (training); with pages, `k` and `v` are a cache (generation). Row t sees
/// keys 0 .. positions[t], or the last of them if the attention has a window. With blocks, `k` and
/// `v` have only some keys of each sequence, row t sees those of its keys that are in the block of
/// its sequence, at least one, and the softmax is over these.
struct KeyValues {
  Tensor k, v;                            ///< [rows, G*K]
  std::span<const KeyBlock> blocks = {};  ///< [N], each in rows of its own; empty: all keys
};

struct AttentionShape {
  int heads = 1;      ///< H
  int kv_heads = 1;   ///< G, divides H: grouped-query attention (Ainslie et al. 2023)
  int head_size = 1;  ///< K
  float scale = 1;    ///< multiplies q.k, usually 1/sqrt(K)
  /// Scores become softcap * tanh(score / softcap) (Gemma 2); 0: no cap.
  float softcap = 0;
  /// A row at position p sees keys p - window + 1 .. p (Beltagy et al. 2020); 0: all up to p.
  int window = 0;
  /// [H] or empty: slope * (j - p) is added to the score of key j (ALiBi, Press et al. 2021).
  std::vector<float> alibi_slopes = {};
};

/// Dropout of the weights of attention (Vaswani et al. 2017): the weight p of a key becomes
/// p / (1 - probability) or 0 after the softmax. Whether it does depends only on `key`, `layer`,
/// the id of the row, the number of its head and the position of the key, not on the batch,
/// micro-batch or part of the heads and keys that contains it.
struct AttentionDropout {
  double probability = 0;       ///< probability that a weight is dropped, below 1
  std::uint64_t key = 0;        ///< random key of the run and the update
  std::uint32_t layer = 0;      ///< number of the layer, below 2^16
  const RowIds& rows;           ///< [T]
  std::int64_t first_head = 0;  ///< number of head 0 in the whole model, below 2^16
};

/// Operands of attention. q [T, H*K].
struct AttentionInputs {
  const Tensor& q;
  const KeyValues& kv;
  const PreparedLayout& layout;
  const AttentionShape& shape;
  Precision precision = Precision::f32;
  const AttentionDropout* dropout = nullptr;  ///< nullptr: none
};

/// Operands of the backward pass of attention. out, dout, dq [T, H*K], lse [T, H], dk, dv [T, G*K].
struct AttentionBackward {
  const Tensor &out, &lse, &dout;
  Tensor &dq, &dk, &dv;  ///< assigned
};

/// silu(x) = x / (1 + exp(-x)); gelu(x) = x Phi(x), Phi the normal distribution (Hendrycks & Gimpel
/// 2016), exactly or by its tanh formula; relu2(x) = max(0, x)^2 (So et al. 2021, Primer).
enum class Activation : std::uint8_t { silu, gelu, gelu_tanh, relu2 };

/// One decoupled AdamW update (Loshchilov & Hutter 2019, alg. 2), as torch.optim.AdamW computes it.
struct AdamW {
  double learning_rate = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  std::int64_t step = 1;         ///< counts from 1: bias correction
  float grad_scale = 1;          ///< gradients are multiplied by this first (clipping)
  bool clear_gradients = false;  ///< zero the gradients after use
};

/// Scaling of the products of the LM head before its softmax: z = cap(logit_scale * product) *
/// inv_temperature with cap(x) = softcap * tanh(x / softcap), or x if softcap is 0.
struct HeadScale {
  float inv_temperature = 1;
  float logit_scale = 1;
  float softcap = 0;
  bool changes_logits() const { return logit_scale != 1 || softcap != 0; }
};

/// Special targets of the LM head. Rows of no_target are skipped: logp, lse, entropy and gradients
/// are 0. target_elsewhere marks a target in another rank's part of the vocabulary: lse, entropy
/// and the softmax term of the gradients are those over this weight; logp is 0, and the gradients
/// lack the term of the target.
inline constexpr std::int32_t no_target = -1, target_elsewhere = -2;

/// Dropout mask (Srivastava et al. 2014). Whether element (row, column) is dropped depends only on
/// `key`, `stream`, the id of its row and its column, not on the batch, micro-batch or part of a
/// matrix that contains it.
struct Dropout {
  double probability = 0;         ///< probability that an element is dropped, below 1
  std::uint64_t key = 0;          ///< random key of the run and the update
  std::uint32_t stream = 0;       ///< random stream of the module
  const RowIds& rows;             ///< [T]
  std::int64_t first_column = 0;  ///< index of column 0 in the whole matrix
};

/// Stochastic rounding (Gupta et al. 2015, arXiv:1502.02551). Element (i, j) of a matrix, or i of a
/// vector with j = 0, has index first + i * ld + j. Its random number depends only on `key`,
/// `stream` and that index.
struct StochasticRounding {
  std::uint64_t key = 0;     ///< random key of the run and the update
  std::uint32_t stream = 0;  ///< random stream of the parameter
  std::int64_t first = 0, ld = 0;
};

/// How the token of a row is drawn from softmax(logits / temperature).
struct SamplingRow {
  bool greedy = false;     ///< the largest logit, the smallest id among equals
  double temperature = 1;  ///< above 0, unless greedy
  double u = 0;            ///< quantile in [0, 1) of the distribution, in the order of ids
  /// Penalties, bans or filters change the logits or the distribution: only the host's sampler
  /// knows them.
  bool processed = false;
};

/// Samples any row on the host.
class HostSampler {
 public:
  virtual ~HostSampler() = default;
  /// The token of row `row`, from its logits [V], or no_target where none can be sampled. `kept`:
  /// nullptr, or receives the tokens that penalties, bans and filters leave, ascending; it stays
  /// empty where they leave all. Called for rows in any order, from several threads at once. May
  /// throw.
  virtual std::int32_t sample(std::int64_t row, std::span<const float> logits,
                              std::vector<std::int32_t>* kept) const = 0;
};

struct SamplingRows {
  std::span<const SamplingRow> rows;  ///< [M]
  const HostSampler& host;            ///< samples the same rows
};

/// The tokens from which each row was sampled: row i has ids[offsets[i]] .. ids[offsets[i + 1] -
/// 1], ascending; none where it was sampled from the whole vocabulary.
struct KeptTokens {
  std::vector<std::int64_t> offsets;  ///< [M + 1]
  std::vector<std::int32_t> ids;
};

/// Results of Device::sample().
struct SamplingOutputs {
  std::vector<std::int32_t>& ids;          ///< [M], no_target where none can be sampled
  Tensor *logp = nullptr, *lse = nullptr;  ///< [M] at temperature 1; nullptr: not computed
  KeptTokens* kept = nullptr;              ///< nullptr: not reported
};

/// Elements begin, begin + 1, ... of a flattened matrix with rows of `width`.
struct FlatPart {
  std::int64_t begin = 0, width = 1;
};

/// The columns of the logits, tokens of the vocabulary, over which the softmax of each row is
/// taken. Its log-sum-exp, entropy and gradients are those over these columns; gradients of others
/// are 0. Where a row keeps none of this part of the vocabulary, its lse is -inf and its entropy 0.
struct ColumnMask {
  std::vector<std::int32_t> sets;   ///< [T] index of the row's set, or -1: all columns
  std::vector<std::uint64_t> bits;  ///< [sets, words]: column v is bit v % 64 of word v / 64
  std::int64_t words = 0;           ///< (V + 63) / 64

  /// The words of a row's set, or nullptr: all columns.
  const std::uint64_t* of(std::int64_t row) const {
    const std::int32_t set = sets[static_cast<std::size_t>(row)];
    return set < 0 ? nullptr : bits.data() + set * words;
  }
};

/// The target of each row of logits, and the columns that its softmax is over.
struct TargetRows {
  std::span<const std::int32_t> targets;  ///< [M]
  const ColumnMask* columns = nullptr;    ///< nullptr: all columns of every row

  const std::uint64_t* columns_of(std::int64_t row) const {
    return columns == nullptr ? nullptr : columns->of(row);
  }
};

/// Low-rank adapter of the LM head: the product is weight.hidden + up.down.
struct HeadAdapter {
  Tensor down;        ///< [T, R]
  Tensor up;          ///< [V, R]
  Tensor ddown, dup;  ///< gradients: [T, R] assigned, [V, R] accumulated
};

/// Operands of the LM head: hidden [T, D], weight [V, D], one target per row.
struct HeadInputs {
  const Tensor &hidden, &weight;
  const Indices& targets;
  HeadScale scale;
  Precision precision = Precision::f32;
  const HeadAdapter* adapter = nullptr;  ///< nullptr: none
  const ColumnMask* columns = nullptr;   ///< nullptr: all columns of every row
};

/// Results of the LM head, [T] each.
struct HeadOutputs {
  Tensor &logp, &lse;
  Tensor* entropy = nullptr;  ///< nullptr: not computed
  /// Receives the logits of the first rows for head_backward(), in the device's own format, or
  /// becomes absent; nullptr: none are kept.
  Tensor* kept = nullptr;
  /// lse and entropy over all columns, whatever HeadInputs::columns keeps; both or none.
  Tensor *whole_lse = nullptr, *whole_entropy = nullptr;
};

/// Upstream gradients of the LM head, [T] each.
struct HeadUpstream {
  const Tensor& dlogp;
  const Tensor* dentropy = nullptr;
};

/// Results of the forward pass that the backward pass reads, over the whole vocabulary even if the
/// weight is a part of it.
struct HeadSaved {
  const Tensor& lse;
  const Tensor* entropy = nullptr;  ///< required with dentropy
  const Tensor* kept = nullptr;     ///< HeadOutputs::kept; nullptr or absent: logits are recomputed
};

/// Gradients of the LM head. dhidden [T, D] is assigned, without the part of the adapter.
struct HeadGradients {
  Tensor& dhidden;
  Tensor& dweight;                 ///< [V, D]; absent: the weight is frozen
  HeadAdapter* adapter = nullptr;  ///< receives ddown and dup
  bool accumulate = true;          ///< add to dweight; false: assign it
};

/// Writes the elements of a flattened tensor from `begin` on. Called for parts in any order, from
/// several threads at once. Must not throw.
using Source = std::function<void(std::int64_t begin, std::span<float> into)>;

/// Reads row `row` of a matrix. Called for rows in any order, from several threads at once. Must
/// not throw.
using RowVisitor = std::function<void(std::int64_t row, std::span<const float> values)>;

}  // namespace troupe::engine::ops
