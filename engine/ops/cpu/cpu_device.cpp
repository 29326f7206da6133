#include "engine/ops/cpu/cpu_device.h"

#include <algorithm>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/ops/cpu/attention/attention.h"
#include "engine/ops/cpu/gemm/gemm.h"
#include "engine/ops/cpu/gemm/grouped_gemm.h"
#include "engine/ops/cpu/rows/elementwise.h"
#include "engine/ops/cpu/rows/norms.h"
#include "engine/ops/cpu/rows/rows.h"
#include "engine/ops/shapes.h"

namespace troupe::engine::ops {
namespace cpu {

CpuDevice::CpuDevice(const Kernels& kernels, const CpuOptions& options)
    : pool_(options.threads, options.pin_threads),
      workspace_(blocks(), options.threads),
      lm_head_(blocks(), options),
      context_{kernels, pool_, workspace_} {
}

void CpuDevice::upload_from(Tensor& to, const Source& source) {
  if (to.dtype() == DType::bf16) return HostDevice::upload_from(to, source);
  cpu::upload_from(context_, to, source);
}

void CpuDevice::visit_rows(const Tensor& from, const RowVisitor& visit) {
  cpu::visit_rows(context_, from, visit);
}

void CpuDevice::fill(Tensor& x, float value) {
  if (x.dtype() == DType::bf16) return HostDevice::fill(x, value);
  cpu::fill(context_, x, value);
}

void CpuDevice::copy(const Tensor& from, Tensor& to) {
  if (from.dtype() == to.dtype()) return HostDevice::copy(from, to);
  check_same_size("copy", {&from, &to});
  context_.parallel_ranges(from.count(), 1, 4096, [&](std::int64_t begin, std::int64_t end, int) {
    convert_range(from, to, begin, end);
  });
}

void CpuDevice::gather_rows(const Tensor& from, const Indices& rows, Tensor& to) {
  if (from.dtype() == DType::bf16) return HostDevice::gather_rows(from, rows, to);
  check_moved_rows("gather_rows", to, rows, from);
  cpu::gather_rows(context_, from, rows.host, to);
}

void CpuDevice::scatter_add_rows(const Tensor& from, const Indices& rows, Tensor& table) {
  check_moved_rows("scatter_add_rows", from, rows, table);
  cpu::scatter_add_rows(context_, from, rows.host, table);
}

void CpuDevice::for_ranges(std::int64_t count, std::int64_t cost, const RangeVisitor& visit) {
  context_.parallel_ranges(count, cost, 1,
                           [&](std::int64_t begin, std::int64_t end, int) { visit(begin, end); });
}

Tensor CpuDevice::rounded_to_f16(const Tensor& x) {
  Tensor out = empty(x.shape(), DType::f32);
  const float* from = data(x);
  float* to = mutable_data(out);
  context_.parallel_ranges(x.count(), 1, 4096, [&](std::int64_t begin, std::int64_t end, int) {
    std::transform(from + begin, from + end, to + begin, to_f16_value);
  });
  return out;
}

void CpuDevice::gemms_in_f16(std::span<const GemmCall> calls) {
  const auto same = [](const Tensor& x, const Tensor& y) {
    return x.buffer() == y.buffer() && x.offset_bytes() == y.offset_bytes() &&
           x.shape() == y.shape();
  };
  std::vector<GemmCall> exact(calls.begin(), calls.end());
  for (std::size_t i = 0; i < exact.size(); ++i) {
    GemmCall& call = exact[i];
    call.how.precision = Precision::f32;
    // An operand that all calls share stays one.
    call.a = i > 0 && same(call.a, calls[0].a) ? exact[0].a : rounded_to_f16(call.a);
    call.b = i > 0 && same(call.b, calls[0].b) ? exact[0].b : rounded_to_f16(call.b);
  }
  grouped_gemm(exact);
}

template <class Call>
void CpuDevice::head_in_f16(const HeadInputs& in, const Call& call) {
  const Tensor hidden = rounded_to_f16(in.hidden), weight = rounded_to_f16(in.weight);
  HeadAdapter adapter;
  if (in.adapter != nullptr) {
    adapter.down = rounded_to_f16(in.adapter->down);
    adapter.up = rounded_to_f16(in.adapter->up);
  }
  call(HeadInputs{.hidden = hidden,
                  .weight = weight,
                  .targets = in.targets,
                  .scale = in.scale,
                  .precision = Precision::f32,
                  .adapter = in.adapter != nullptr ? &adapter : nullptr,
                  .columns = in.columns});
}

void CpuDevice::gemm(const Tensor& a, const Tensor& b, Tensor& c, Gemm how) {
  if (how.precision == Precision::f16) {
    const GemmCall call{a, b, c, how};
    return gemms_in_f16(std::span(&call, 1));
  }
  if (is_packed(b)) {
    GemmCall call{a, b, c, how};
    return gemm_with_packed_b(context_, std::span(&call, 1));
  }
  cpu::gemm(context_, how.transpose_b ? GemmKind::nt : GemmKind::nn, gemm_args(a, b, c, how),
            how.precision);
}

void CpuDevice::grouped_gemm(std::span<GemmCall> calls) {
  const bool f16 = std::ranges::any_of(
      calls, [](const GemmCall& call) { return call.how.precision == Precision::f16; });
  if (f16) return gemms_in_f16(calls);
  if (!cpu::grouped_gemm(context_, calls)) Device::grouped_gemm(calls);
}

void CpuDevice::pack(const Tensor& weight, DType type, Tensor& packed) {
  check(weight.shape().rank() == 2, "pack: a weight is a matrix");
  const Shape shape = packed_weight_shape(context_, type, rows_of(weight), width_of(weight));
  if (!packed) packed = empty(shape, type);
  check_packed(packed, type, shape);
  pack_weight(context_, weight, packed);
}

void CpuDevice::add_bias(Tensor& y, const Tensor& bias) {
  check_bias("add_bias", y, bias);
  cpu::add_bias(context_, y, bias);
}

void CpuDevice::bias_backward(const Tensor& dy, Tensor& dbias) {
  check_bias("bias_backward", dy, dbias);
  cpu::bias_backward(context_, dy, dbias);
}

void CpuDevice::add(const Tensor& a, const Tensor& b, Tensor& sum) {
  check_same_size("add", {&a, &b, &sum});
  cpu::add(context_, a, b, sum);
}

void CpuDevice::scale(Tensor& x, float factor) {
  cpu::scale(context_, x, factor);
}

void CpuDevice::dropout(const Tensor& x, const Dropout& how, Tensor& y) {
  check_dropout(x, how, y);
  cpu::dropout(context_, x, how, y);
}

void CpuDevice::rms_norm(const Tensor& x, const Tensor& gain, float eps, Tensor& y, Tensor& inv_rms,
                         float offset) {
  check_norm(x, gain, y, inv_rms);
  cpu::rms_norm(context_, x, gain, eps, y, inv_rms, offset);
}

void CpuDevice::rms_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& inv_rms,
                                  const Tensor& dy, Tensor& dx, Tensor& dgain, float offset) {
  check_norm_backward(x, gain, inv_rms, dy, dx, dgain);
  cpu::rms_norm_backward(context_, x, gain, inv_rms, dy, dx, dgain, offset);
}

void CpuDevice::layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, float eps,
                           Tensor& y, Tensor& mean, Tensor& inv_std) {
  check_norm(x, gain, y, inv_std);
  check_layer_norm(gain, bias, mean, inv_std);
  cpu::layer_norm(context_, x, gain, bias, eps, y, mean, inv_std);
}

void CpuDevice::layer_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& mean,
                                    const Tensor& inv_std, const Tensor& dy, Tensor& dx,
                                    Tensor& dgain) {
  check_norm_backward(x, gain, inv_std, dy, dx, dgain);
  check_layer_norm(gain, {}, mean, inv_std);
  cpu::layer_norm_backward(context_, x, gain, mean, inv_std, dy, dx, dgain);
}

void CpuDevice::rope(Tensor& x, const Indices& positions, const Tensor& cos, const Tensor& sin,
                     int heads, bool inverse) {
  check_rope(x, positions, cos, sin, heads);
  cpu::rope(context_, x, positions.host, cos, sin, heads, inverse);
}

void CpuDevice::attention(const AttentionInputs& in, Tensor& out, Tensor* lse) {
  check_attention(in, out, lse);
  cpu::attention(context_, in, out, lse);
}

void CpuDevice::attention_backward(const AttentionInputs& in, const AttentionBackward& with) {
  check_attention_backward(in, with);
  cpu::attention_backward(context_, in, with);
}

void CpuDevice::gated(Activation activation, const Tensor& gate, const Tensor& up, Tensor& y) {
  check_same_size("gated", {&gate, &up, &y});
  cpu::gated(context_, activation, gate, up, y);
}

void CpuDevice::gated_backward(Activation activation, const Tensor& gate, const Tensor& up,
                               const Tensor& dy, Tensor& dgate, Tensor& dup, Tensor* y) {
  check_gated_backward(gate, up, dy, dgate, dup, y);
  cpu::gated_backward(context_, activation, gate, up, dy, dgate, dup, y);
}

void CpuDevice::activate(Activation activation, const Tensor& x, Tensor& y) {
  check_same_size("activate", {&x, &y});
  cpu::activate(context_, activation, x, y);
}

void CpuDevice::activate_backward(Activation activation, const Tensor& x, const Tensor& dy,
                                  Tensor& dx) {
  check_same_size("activate_backward", {&x, &dy, &dx});
  cpu::activate_backward(context_, activation, x, dy, dx);
}

void CpuDevice::head(const HeadInputs& in, const HeadOutputs& out) {
  if (in.precision == Precision::f16)
    return head_in_f16(in, [&](const HeadInputs& exact) { head(exact, out); });
  check_head(in);
  check_head_outputs(in, out);
  if (out.kept != nullptr) {
    const std::int64_t logits = lm_head_kept_logits(context_, lm_head_, in);
    *out.kept = logits > 0 ? empty({logits}, DType::f32) : Tensor();
  }
  lm_head(context_, lm_head_, in, out);
}

void CpuDevice::head_backward(const HeadInputs& in, const HeadSaved& saved, const HeadUpstream& up,
                              const HeadGradients& to) {
  if (in.precision == Precision::f16)
    return head_in_f16(in, [&](const HeadInputs& exact) { head_backward(exact, saved, up, to); });
  check_head(in);
  check_head_gradients(in, up, saved.entropy, to);
  check(saved.lse.count() == up.dlogp.count(), "head_backward: lse [T]");
  lm_head_backward(context_, lm_head_, in, saved, up, to);
}

void CpuDevice::head_forward_backward(const HeadInputs& in, const HeadUpstream& up,
                                      const HeadOutputs& out, const HeadGradients& to) {
  if (in.precision == Precision::f16)
    return head_in_f16(in,
                       [&](const HeadInputs& exact) { head_forward_backward(exact, up, out, to); });
  check_head(in);
  check_head_outputs(in, out);
  check_head_gradients(in, up, out.entropy, to);
  lm_head_forward_backward(context_, lm_head_, in, up, out, to);
}

void CpuDevice::scale_logits(Tensor& logits, const HeadScale& scale) {
  if (scale.changes_logits()) cpu::scale_logits(context_, logits, scale);
}

void CpuDevice::token_logprob(const Tensor& logits, const Indices& targets, float inv_temperature,
                              Tensor& logp, Tensor& lse, const ColumnMask* columns) {
  check_token_logprob(logits, targets, logp, lse, columns);
  cpu::token_logprob(context_, logits, {targets.host, columns}, inv_temperature, logp, lse);
}

void CpuDevice::adamw(Tensor& values, Tensor& grads, Tensor& m, Tensor& v, const AdamW& how) {
  check_same_size("adamw", {&values, &grads, &m, &v});
  cpu::adamw(context_, values, grads, m, v, how);
}

void CpuDevice::round_to_bf16(Tensor& x, const StochasticRounding& how) {
  context_.parallel_ranges(
      rows_of(x), 8 * width_of(x), 1,
      [&](std::int64_t begin, std::int64_t end, int) { round_rows(x, how, begin, end); });
}

void CpuDevice::store_bf16(const Tensor& from, Tensor& to, const StochasticRounding& how,
                           const FlatPart& part) {
  context_.parallel_ranges(from.count(), 8, 4096, [&](std::int64_t begin, std::int64_t end, int) {
    store_range(from, to, how, part, begin, end);
  });
}

double CpuDevice::sum_of_squares(const Tensor& x) {
  return cpu::sum_of_squares(context_, x);
}

bool CpuDevice::all_finite(const Tensor& x) {
  return cpu::all_finite(context_, x);
}

}  // namespace cpu

const char* best_instruction_set() {
  return cpu::kernels_for("").isa;
}

std::unique_ptr<Device> make_cpu_device(CpuOptions options) {
  check(options.threads >= 0 && options.threads <= 1024, "make_cpu_device: threads");
  if (options.threads == 0) options.threads = usable_processors();
  if (options.pin_threads && !cpu::ThreadPool::pins(options.threads))
    log_warning(cat("threads are not pinned: the engine has ", options.threads,
                    ", the processors that this process may use are ", usable_processors(),
                    "; start it on as many (taskset, mpirun --bind-to, a job's cpu mask)"));
  const char* isa = options.isa == nullptr ? "" : options.isa;
  return std::make_unique<cpu::CpuDevice>(cpu::kernels_for(isa), options);
}

}  // namespace troupe::engine::ops
