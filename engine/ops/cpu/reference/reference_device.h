// The reference device: plain loops over doubles on one thread. It is the test oracle of every
// other device, so it is written for readability, not for speed. Every result is computed row by
// row, independently of the rest of the batch.
#pragma once

#include "engine/ops/cpu/host_device.h"

namespace troupe::engine::ops::cpu::reference {

class ReferenceDevice : public HostDevice {
 public:
  void gemm(const Tensor& a, const Tensor& b, Tensor& c, Gemm how) override;
  void pack(const Tensor& weight, DType type, Tensor& packed) override;
  void add_bias(Tensor& y, const Tensor& bias) override;
  void bias_backward(const Tensor& dy, Tensor& dbias) override;
  void add(const Tensor& a, const Tensor& b, Tensor& sum) override;
  void scale(Tensor& x, float factor) override;
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
  int parallel_kv_heads() const override { return 1; }
  void gated(Activation activation, const Tensor& gate, const Tensor& up, Tensor& y) override;
  void gated_backward(Activation activation, const Tensor& gate, const Tensor& up, const Tensor& dy,
                      Tensor& dgate, Tensor& dup, Tensor* y) override;
  void activate(Activation activation, const Tensor& x, Tensor& y) override;
  void activate_backward(Activation activation, const Tensor& x, const Tensor& dy,
                         Tensor& dx) override;
  void head(const HeadInputs& in, const HeadOutputs& out) override;
  void head_backward(const HeadInputs& in, const HeadSaved& saved, const HeadUpstream& up,
                     const HeadGradients& to) override;
  void scale_logits(Tensor& logits, const HeadScale& scale) override;
  void token_logprob(const Tensor& logits, const Indices& targets, float inv_temperature,
                     Tensor& logp, Tensor& lse, const ColumnMask* columns) override;
  void adamw(Tensor& values, Tensor& grads, Tensor& m, Tensor& v, const AdamW& how) override;
  double sum_of_squares(const Tensor& x) override;
  bool all_finite(const Tensor& x) override;
};

}  // namespace troupe::engine::ops::cpu::reference
