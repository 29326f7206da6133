// CpuDevice: checks the shapes of each operation and runs it on a thread pool with the kernels of
// one instruction set. Not thread-safe: it owns one pool and its scratch memory.
#pragma once

#include <memory>
#include <span>

#include "engine/ops/cpu/context/context.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/ops/cpu/host_device.h"
#include "engine/ops/cpu/lm_head/lm_head.h"

namespace troupe::engine::ops::cpu {

class CpuDevice final : public HostDevice {
 public:
  CpuDevice(const Kernels& kernels, const CpuOptions& options);

  void upload_from(Tensor& to, const Source& source) override;
  void visit_rows(const Tensor& from, const RowVisitor& visit) override;
  void fill(Tensor& x, float value) override;
  void copy(const Tensor& from, Tensor& to) override;
  void gather_rows(const Tensor& from, const Indices& rows, Tensor& to) override;
  void scatter_add_rows(const Tensor& from, const Indices& rows, Tensor& table) override;
  void gemm(const Tensor& a, const Tensor& b, Tensor& c, Gemm how) override;
  void grouped_gemm(std::span<GemmCall> calls) override;
  void pack(const Tensor& weight, DType type, Tensor& packed) override;
  void add_bias(Tensor& y, const Tensor& bias) override;
  void bias_backward(const Tensor& dy, Tensor& dbias) override;
  void add(const Tensor& a, const Tensor& b, Tensor& sum) override;
  void scale(Tensor& x, float factor) override;
  void dropout(const Tensor& x, const Dropout& how, Tensor& y) override;
  void rms_norm(const Tensor& x, const Tensor& gain, float eps, Tensor& y, Tensor& inv_rms,
                float offset) override;
  void rms_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& inv_rms,
                         const Tensor& dy, Tensor& dx, Tensor& dgain, float offset) override;
  void layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, float eps, Tensor& y,
                  Tensor& mean, Tensor& inv_std) override;
  void layer_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& mean,
                           const Tensor& inv_std, const Tensor& dy, Tensor& dx,
                           Tensor& dgain) override;
  void rope(Tensor& x, const Indices& positions, const Tensor& cos, const Tensor& sin, int heads,
            bool inverse) override;
  void attention(const AttentionInputs& in, Tensor& out, Tensor* lse) override;
  void attention_backward(const AttentionInputs& in, const AttentionBackward& with) override;
  int parallel_kv_heads() const override { return pool_.threads(); }
  void gated(Activation activation, const Tensor& gate, const Tensor& up, Tensor& y) override;
  void gated_backward(Activation activation, const Tensor& gate, const Tensor& up, const Tensor& dy,
                      Tensor& dgate, Tensor& dup, Tensor* y) override;
  void activate(Activation activation, const Tensor& x, Tensor& y) override;
  void activate_backward(Activation activation, const Tensor& x, const Tensor& dy,
                         Tensor& dx) override;
  void head(const HeadInputs& in, const HeadOutputs& out) override;
  void head_backward(const HeadInputs& in, const HeadSaved& saved, const HeadUpstream& up,
                     const HeadGradients& to) override;
  void head_forward_backward(const HeadInputs& in, const HeadUpstream& up, const HeadOutputs& out,
                             const HeadGradients& to) override;
  void scale_logits(Tensor& logits, const HeadScale& scale) override;
  void token_logprob(const Tensor& logits, const Indices& targets, float inv_temperature,
                     Tensor& logp, Tensor& lse, const ColumnMask* columns) override;
  void adamw(Tensor& values, Tensor& grads, Tensor& m, Tensor& v, const AdamW& how) override;
  void round_to_bf16(Tensor& x, const StochasticRounding& how) override;
  void store_bf16(const Tensor& from, Tensor& to, const StochasticRounding& how,
                  const FlatPart& part) override;
  double sum_of_squares(const Tensor& x) override;
  bool all_finite(const Tensor& x) override;

 protected:
  void for_ranges(std::int64_t count, std::int64_t cost, const RangeVisitor& visit) override;

 private:
  /// A copy of x with values rounded to f16.
  Tensor rounded_to_f16(const Tensor& x);
  /// GEMMs and heads in f16: those in f32 of rounded operands.
  void gemms_in_f16(std::span<const GemmCall> calls);
  template <class Call>
  void head_in_f16(const HeadInputs& in, const Call& call);

  ThreadPool pool_;
  Workspace workspace_;
  LmHeadLimits lm_head_;
  const Context context_;
};

}  // namespace troupe::engine::ops::cpu
