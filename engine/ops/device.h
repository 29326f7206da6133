// Device: what the engine asks of a kind of hardware, in 56 virtual functions: memory, products,
// rows, norms, attention, mixtures of experts, the LM head, the optimizer. A new kind implements
// them in a folder beside engine/ops/cpu, checks shapes with shapes.h, and gets a line in
// devices/make_device.cpp. engine/ops/cpu has two devices: the reference (Eigen, plain loops, the
// test oracle) and the CPU device (own kernels per instruction set).
//
// Axis letters: T packed rows (tokens), N sequences, D width, H query heads, G key/value heads, K
// head size, F inner width, V vocabulary. Everything is row-major f32 unless stated otherwise.
// Results of a row never depend on the other rows of the call, on their number, or on the number of
// threads: decoding is bit-identical to a full forward pass. Gradients of parameters are added row
// by row to the value before; all other results are assigned. Shapes that do not match are a Bug.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/ops/routing.h"
#include "engine/ops/types.h"
#include "engine/tensor/tensor.h"

namespace troupe::engine::ops {

class Device {
 public:
  virtual ~Device() = default;

  // Memory. empty() leaves values undefined.
  virtual Tensor empty(Shape shape, DType type = DType::f32) = 0;
  virtual void upload(Tensor& to, std::span<const float> values) = 0;
  /// Uploads values that `source` generates; `to` is f32. A device in host memory lets `source`
  /// write to the tensor directly.
  virtual void upload_from(Tensor& to, const Source& source) = 0;
  virtual void download(const Tensor& from, std::span<float> values) = 0;
  /// Visits every row of `from` [M, N] on the host; f32. The values are valid during the visit. A
  /// device in host memory copies nothing.
  virtual void visit_rows(const Tensor& from, const RowVisitor& visit) = 0;
  virtual void fill(Tensor& x, float value) = 0;
  /// to <- from, of the same count. Between f32 and bf16 it converts: bf16 exactly, f32 to the
  /// nearest bf16, ties to even.
  virtual void copy(const Tensor& from, Tensor& to) = 0;
  /// Numbers for the kernels, for all calls that read them. By default kernels read the host's.
  virtual Indices indices(std::span<const std::int32_t> numbers);
  virtual RowIds row_ids(std::span<const std::uint64_t> ids);
  /// The layout of a pass; pages of the cache that it reads and writes must hold every position.
  PreparedLayout prepare(Layout layout, Pages pages = {});
  virtual void synchronize() = 0;
  virtual MemoryUse memory() const = 0;

  // Products. A [M, K] or transposed [K, M]; B [K, N] or transposed [N, K]; C [M, N].
  virtual void gemm(const Tensor& a, const Tensor& b, Tensor& c, Gemm how) = 0;
  /// Products in order, none of which reads the result of another. If all have the same A (several
  /// layers of one input), the same B with A transposed (gradients of their weights), or the same
  /// C, to which all but the first accumulate (gradient of their input), a device may read the
  /// shared operand once. The bits are those of gemm().
  virtual void grouped_gemm(std::span<GemmCall> calls);
  /// Packs weight [N, K] for bf16 products x W^T, which then read `packed` in place of the weight,
  /// faster if x has few rows. `packed` is absent, or was packed from a weight of this shape as the
  /// same type:
  ///   bf16_packed  rounded to bf16: the products have the same bits as with the weight.
  ///   int8_packed  integers q from -127 to 127 and a scale per row: scale = largest |w| / 127,
  ///                q = w (127 / largest) in f32, rounded to nearest, ties to even. x W^T becomes
  ///                (x q^T) scale; q is exact in bf16. Such a product does not accumulate. A row
  ///                below 2^-100 becomes zeros; a row with values that are not finite gives NaN.
  virtual void pack(const Tensor& weight, DType type, Tensor& packed) = 0;
  /// y [T, F] += bias [F]
  virtual void add_bias(Tensor& y, const Tensor& bias) = 0;
  /// dbias [F] += sum over rows of dy
  virtual void bias_backward(const Tensor& dy, Tensor& dbias) = 0;
  /// Elementwise sum; `sum` may be a or b.
  virtual void add(const Tensor& a, const Tensor& b, Tensor& sum) = 0;
  virtual void scale(Tensor& x, float factor) = 0;

  /// y = x / (1 - probability) or 0; y may be x. x, y [T, F].
  virtual void dropout(const Tensor& x, const Dropout& how, Tensor& y) = 0;

  // Operations of adapters. x, y [T, F].
  /// x[t, f] *= factors[f]
  virtual void scale_columns(Tensor& x, const Tensor& factors) = 0;
  /// sums[f] += a[t, f] * b[t, f], in the order of t
  virtual void column_dots(const Tensor& a, const Tensor& b, Tensor& sums) = 0;
  /// sums[t] = sum over f of x[t, f]^2, in f64
  virtual void row_squares(const Tensor& x, Tensor& sums) = 0;

  // Rows. rows[i] < 0 gives a row of zeros in gather_rows and is skipped in scatter_rows.
  /// to[i] = from[rows[i]]; `from` is f32 or bf16.
  virtual void gather_rows(const Tensor& from, const Indices& rows, Tensor& to) = 0;
  /// to[rows[i]] = from[i]
  virtual void scatter_rows(const Tensor& from, const Indices& rows, Tensor& to) = 0;
  /// table[rows[i]] += from[i], in the order of i (the gradient of an embedding).
  virtual void scatter_add_rows(const Tensor& from, const Indices& rows, Tensor& table) = 0;

  /// y = x * inv_rms * (offset + gain), inv_rms[t] = 1 / sqrt(mean(x[t]^2) + eps) (Zhang & Sennrich
  /// 2019). x, y [T, D], gain [D].
  virtual void rms_norm(const Tensor& x, const Tensor& gain, float eps, Tensor& y, Tensor& inv_rms,
                        float offset) = 0;
  virtual void rms_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& inv_rms,
                                 const Tensor& dy, Tensor& dx, Tensor& dgain, float offset) = 0;
  /// y = (x - mean) * inv_std * gain + bias with the mean and 1 / sqrt(variance + eps) of each row
  /// (Ba et al. 2016). x, y [T, D], gain [D], bias [D] or absent; mean, inv_std [T].
  virtual void layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, float eps,
                          Tensor& y, Tensor& mean, Tensor& inv_std) = 0;
  /// Assigns dx, accumulates dgain. The gradient of the bias is bias_backward().
  virtual void layer_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& mean,
                                   const Tensor& inv_std, const Tensor& dy, Tensor& dx,
                                   Tensor& dgain) = 0;

  /// Rotates pairs (i, i + K/2) of every head of x [T, heads*K] in place by the angle of
  /// positions[t]; cos, sin are [P, K/2] tables indexed by position (Su et al. 2021, half-split
  /// layout of the Hugging Face checkpoints). `inverse` rotates by the negative angle (backward).
  virtual void rope(Tensor& x, const Indices& positions, const Tensor& cos, const Tensor& sin,
                    int heads, bool inverse) = 0;

  /// out[t] = softmax(score) v over the keys of its sequence that row t sees, with score =
  /// cap(scale * q[t].k) + slope * (j - p) as `shape` defines. Keys outside a window are not
  /// visited. out [T, H*K]; lse [T, H] is the log of the softmax's denominator, for the backward
  /// pass; nullptr: not stored. In bf16 q, k, v and the weights e = exp(score - max of the row) are
  /// rounded before they are multiplied; the denominator is the sum of the unrounded e. Dropout is
  /// applied to e before it is rounded, and does not change the denominator.
  virtual void attention(const AttentionInputs& in, Tensor& out, Tensor* lse) = 0;
  /// Gradients of attention without pages. In bf16 q, k, v, dout, the softmax p and the gradients
  /// of the products q.k are rounded before they are multiplied.
  virtual void attention_backward(const AttentionInputs& in, const AttentionBackward& with) = 0;
  /// Returns how many key/value heads of a sequence attention_backward() computes at a time: fewer
  /// leave a part of the device idle.
  virtual int parallel_kv_heads() const = 0;

  /// y = activation(gate) * up (Shazeer 2020). All [T, F]; dgate may be gate, and dup may be up.
  /// gated_backward() also recomputes y, with the same bits, unless it is nullptr; y may be dy.
  virtual void gated(Activation activation, const Tensor& gate, const Tensor& up, Tensor& y) = 0;
  virtual void gated_backward(Activation activation, const Tensor& gate, const Tensor& up,
                              const Tensor& dy, Tensor& dgate, Tensor& dup, Tensor* y) = 0;
  /// y = activation(x). All [T, F]; y may be x, and dx may be dy.
  virtual void activate(Activation activation, const Tensor& x, Tensor& y) = 0;
  virtual void activate_backward(Activation activation, const Tensor& x, const Tensor& dy,
                                 Tensor& dx) = 0;

  // Mixtures of experts.
  /// Chooses the experts of every token from logits [T, E] and bias [E] or absent, and sorts the
  /// rows; assigns all tensors of `routes`, which have memory.
  virtual void route(const Router& how, const Tensor& logits, const Tensor& bias,
                     Routes& routes) = 0;
  /// dlogits [T, E] from dweights [T, k], through the weights of the chosen experts.
  virtual void route_backward(const Router& how, const Tensor& logits, const Routes& routes,
                              const Tensor& dweights, Tensor& dlogits) = 0;
  /// Drops the choices of an expert beyond the first `capacity` by `policy`.
  virtual void drop_choices(std::int64_t capacity, DropPolicy policy, Routes& routes) = 0;
  /// Adds to sums[n] those of rows offsets[n] .. offsets[n + 1], in their order. `shares` false:
  /// RouterSums::favourites, shares and squares are left out.
  virtual void add_router_sums(const Router& how, const Tensor& logits, const Routes& routes,
                               std::span<const std::int32_t> offsets, std::span<RouterSums> sums,
                               bool shares) = 0;
  /// Adds the gradient through the sums to dlogits [T, E]. Counts are constants.
  virtual void add_router_slopes(const Router& how, const Tensor& logits,
                                 const RouterSlopes& slopes, Tensor& dlogits) = 0;
  /// rows [M, D]: that of each choice is x[token], x [T, D]; 0 where a row has no choice.
  virtual void permute(const Tensor& x, const Routes& routes, Tensor& rows) = 0;
  /// sums[t] = the sum of the rows of token t in ascending order of experts. rows [M, D].
  virtual void permute_backward(const Tensor& rows, const Routes& routes, Tensor& sums) = 0;
  /// Rows of expert e of c [M, N] = those of a [M, K] times op(b[e]), or += with `accumulate`.
  /// `how` is that of gemm(), without transpose_a. b may be packed.
  virtual void ragged_gemm(const Routes& routes, const Tensor& a, std::span<const Tensor> b,
                           Tensor& c, Gemm how) = 0;
  /// Gradient of b[e] of ragged_gemm() with transpose_b: dc^T a over the rows of expert e. dc
  /// [M, F], a [M, D].
  virtual void ragged_gradients(const Routes& routes, const Tensor& dc, const Tensor& a,
                                const RaggedGradients& to, Precision precision) = 0;
  /// y[t] = sum of weight * output over the experts of token t in ascending order, plus that of the
  /// shared expert. y [T, D]. Gradients of weights of dropped choices are 0.
  virtual void combine(const Combination& in, Tensor& y) = 0;
  virtual void combine_backward(const Combination& in, const Tensor& dy,
                                const CombinationGradients& to) = 0;

  /// Fused LM head with z of weight.hidden as HeadScale defines: logp[t] = z[targets[t]] - lse[t]
  /// and entropy[t] = lse - sum_v p_v z_v. Logits are computed block by block and discarded, unless
  /// they are kept.
  virtual void head(const HeadInputs& in, const HeadOutputs& out) = 0;
  virtual void head_backward(const HeadInputs& in, const HeadSaved& saved, const HeadUpstream& up,
                             const HeadGradients& to) = 0;
  /// head() and head_backward() at once and with the same bits, for upstream gradients that are
  /// known beforehand: logits are computed once. out.kept is not used.
  virtual void head_forward_backward(const HeadInputs& in, const HeadUpstream& up,
                                     const HeadOutputs& out, const HeadGradients& to);
  /// Converts products [M, V] of head() to its logits at temperature 1, cap(logit_scale * product),
  /// with the same bits. Generation stores them.
  virtual void scale_logits(Tensor& logits, const HeadScale& scale) = 0;
  /// logp of targets [M] from stored logits [M, V] (generation), bit-identical to head(). A special
  /// target gives logp 0; its lse is still computed. `columns` as in HeadInputs.
  virtual void token_logprob(const Tensor& logits, const Indices& targets, float inv_temperature,
                             Tensor& logp, Tensor& lse, const ColumnMask* columns = nullptr) = 0;

  /// Samples a token of each row of logits [M, V] (generation), with its logp and lse as
  /// token_logprob() computes them. A device may sample rows itself that are not `processed` and
  /// whose logits are finite, with the tokens of the host's sampler; it leaves others to that. By
  /// default the host samples all. Throws what the host's sampler threw for the first such row.
  virtual void sample(const Tensor& logits, const SamplingRows& rows, const SamplingOutputs& out);

  // The optimizer, over flat ranges of one arena.
  virtual void adamw(Tensor& values, Tensor& grads, Tensor& m, Tensor& v, const AdamW& how) = 0;
  /// Rounds x [M, N] or [M] to one of the two nearest bf16 values, stochastically, so that the mean
  /// is x.
  virtual void round_to_bf16(Tensor& x, const StochasticRounding& how) = 0;
  /// to (bf16) <- from (f32), rounded as round_to_bf16() rounds the matrix of which they are
  /// `part`.
  virtual void store_bf16(const Tensor& from, Tensor& to, const StochasticRounding& how,
                          const FlatPart& part) = 0;
  /// f64, in a fixed order. x is f32 or bf16, as in all_finite().
  virtual double sum_of_squares(const Tensor& x) = 0;
  virtual bool all_finite(const Tensor& x) = 0;
};

/// Returns all values of a tensor, after synchronizing.
std::vector<float> to_host(Device& device, const Tensor& from);
Tensor from_host(Device& device, Shape shape, std::span<const float> values);

}  // namespace troupe::engine::ops
