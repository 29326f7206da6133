#include "engine/ops/profiled_device.h"

#include <type_traits>
#include <utility>

#include "engine/ops/phase.h"
#include "engine/ops/roofline.h"

namespace troupe::engine::ops {
namespace {

/// Operands of an operation, each as often as it is read or written.
using Operands = std::initializer_list<const Tensor*>;

double operand_bytes(Operands operands) {
  double bytes = 0;
  for (const Tensor* x : operands)
    if (x && *x) bytes += static_cast<double>(x->bytes());
  return bytes;
}

std::string shapes_of(Operands operands) {
  std::string text;
  const Tensor* before = nullptr;
  for (const Tensor* x : operands) {
    if (!x || !*x || x == before) continue;
    text += (text.empty() ? "" : " ") + x->shape().text();
    before = x;
  }
  return text;
}

using Rows = const Indices&;
using In = const Tensor&;

/// Each function gives the name, the operands, the work of products, and the forwarded call.
class ProfiledDevice final : public Device, public SpanSource {
 public:
  ProfiledDevice(std::shared_ptr<Device> inner, Spans& spans)
      : to_(std::move(inner)), spans_(spans) {}

  Spans& spans() override { return spans_; }

  Tensor empty(Shape shape, DType type) override {
    return moved("empty", {}, [&] { return to_->empty(shape, type); });
  }
  void upload(Tensor& to, std::span<const float> values) override {
    moved("upload", {&to, &to}, [&] { to_->upload(to, values); });
  }
  void upload_from(Tensor& to, const Source& source) override {
    moved("upload_from", {&to}, [&] { to_->upload_from(to, source); });
  }
  void download(In from, std::span<float> values) override {
    moved("download", {&from, &from}, [&] { to_->download(from, values); });
  }
  void visit_rows(In from, const RowVisitor& visit) override {
    moved("visit_rows", {&from}, [&] { to_->visit_rows(from, visit); });
  }
  void fill(Tensor& x, float value) override {
    moved("fill", {&x}, [&] { to_->fill(x, value); });
  }
  void copy(In from, Tensor& to) override {
    moved("copy", {&from, &to}, [&] { to_->copy(from, to); });
  }
  MemoryUse memory() const override { return to_->memory(); }
  Indices indices(std::span<const std::int32_t> numbers) override { return to_->indices(numbers); }
  RowIds row_ids(std::span<const std::uint64_t> ids) override { return to_->row_ids(ids); }
  void synchronize() override {
    moved("synchronize", {}, [&] { to_->synchronize(); });
  }

  void gemm(In a, In b, Tensor& c, Gemm how) override {
    computed(
        "gemm", {&a, &b, &c}, [&] { return gemm_work(a, b, c, how); },
        [&] { to_->gemm(a, b, c, how); });
  }
  void grouped_gemm(std::span<GemmCall> calls) override {
    const ScopedSpan span(&spans_, [&] {
      SpanStart start{SpanKind::op, "gemm", gemms_work(calls), {}};
      for (const GemmCall& call : calls)
        if (spans_.wants_shapes())
          start.detail +=
              (start.detail.empty() ? "" : ", ") + shapes_of({&call.a, &call.b, &call.c});
      return start;
    });
    to_->grouped_gemm(calls);
  }
  void pack(In weight, DType type, Tensor& packed) override {
    moved("pack", {&weight, &weight}, [&] { to_->pack(weight, type, packed); });
  }
  void add_bias(Tensor& y, In bias) override {
    moved("add_bias", {&y, &y, &bias}, [&] { to_->add_bias(y, bias); });
  }
  void bias_backward(In dy, Tensor& dbias) override {
    moved("bias_backward", {&dy, &dbias, &dbias}, [&] { to_->bias_backward(dy, dbias); });
  }
  void add(In a, In b, Tensor& sum) override {
    moved("add", {&a, &b, &sum}, [&] { to_->add(a, b, sum); });
  }
  void scale(Tensor& x, float factor) override {
    moved("scale", {&x, &x}, [&] { to_->scale(x, factor); });
  }

  void dropout(In x, const Dropout& how, Tensor& y) override {
    moved("dropout", {&x, &y}, [&] { to_->dropout(x, how, y); });
  }
  void scale_columns(Tensor& x, In factors) override {
    moved("scale_columns", {&x, &x, &factors}, [&] { to_->scale_columns(x, factors); });
  }
  void column_dots(In a, In b, Tensor& sums) override {
    moved("column_dots", {&a, &b, &sums, &sums}, [&] { to_->column_dots(a, b, sums); });
  }
  void row_squares(In x, Tensor& sums) override {
    moved("row_squares", {&x, &sums}, [&] { to_->row_squares(x, sums); });
  }

  void gather_rows(In from, Rows rows, Tensor& to) override {
    moved("gather_rows", {&to, &to}, [&] { to_->gather_rows(from, rows, to); });
  }
  void scatter_rows(In from, Rows rows, Tensor& to) override {
    moved("scatter_rows", {&from, &from}, [&] { to_->scatter_rows(from, rows, to); });
  }
  void scatter_add_rows(In from, Rows rows, Tensor& table) override {
    moved("scatter_add_rows", {&from, &from, &from},
          [&] { to_->scatter_add_rows(from, rows, table); });
  }

  void rms_norm(In x, In gain, float eps, Tensor& y, Tensor& inv_rms, float offset) override {
    moved("rms_norm", {&x, &gain, &y, &inv_rms},
          [&] { to_->rms_norm(x, gain, eps, y, inv_rms, offset); });
  }
  void rms_norm_backward(In x, In gain, In inv_rms, In dy, Tensor& dx, Tensor& dgain,
                         float offset) override {
    moved("rms_norm_backward", {&x, &gain, &inv_rms, &dy, &dx, &dgain, &dgain},
          [&] { to_->rms_norm_backward(x, gain, inv_rms, dy, dx, dgain, offset); });
  }
  void layer_norm(In x, In gain, In bias, float eps, Tensor& y, Tensor& mean,
                  Tensor& inv_std) override {
    moved("layer_norm", {&x, &gain, &bias, &y, &mean, &inv_std},
          [&] { to_->layer_norm(x, gain, bias, eps, y, mean, inv_std); });
  }
  void layer_norm_backward(In x, In gain, In mean, In inv_std, In dy, Tensor& dx,
                           Tensor& dgain) override {
    moved("layer_norm_backward", {&x, &gain, &mean, &inv_std, &dy, &dx, &dgain, &dgain},
          [&] { to_->layer_norm_backward(x, gain, mean, inv_std, dy, dx, dgain); });
  }

  void rope(Tensor& x, Rows positions, In cos, In sin, int heads, bool inverse) override {
    moved("rope", {&x, &x}, [&] { to_->rope(x, positions, cos, sin, heads, inverse); });
  }

  void attention(const AttentionInputs& in, Tensor& out, Tensor* lse) override {
    computed(
        "attention", {&in.q, &in.kv.k, &in.kv.v, &out}, [&] { return attention_work(in); },
        [&] { to_->attention(in, out, lse); });
  }
  void attention_backward(const AttentionInputs& in, const AttentionBackward& with) override {
    computed(
        "attention_backward", {&in.q, &in.kv.k, &in.kv.v, &with.dout},
        [&] { return attention_backward_work(in); }, [&] { to_->attention_backward(in, with); });
  }

  int parallel_kv_heads() const override { return to_->parallel_kv_heads(); }

  void gated(Activation activation, In gate, In up, Tensor& y) override {
    moved("gated", {&gate, &up, &y}, [&] { to_->gated(activation, gate, up, y); });
  }
  void gated_backward(Activation activation, In gate, In up, In dy, Tensor& dgate, Tensor& dup,
                      Tensor* y) override {
    moved("gated_backward", {&gate, &up, &dy, &dgate, &dup, y},
          [&] { to_->gated_backward(activation, gate, up, dy, dgate, dup, y); });
  }
  void activate(Activation activation, In x, Tensor& y) override {
    moved("activate", {&x, &y}, [&] { to_->activate(activation, x, y); });
  }
  void activate_backward(Activation activation, In x, In dy, Tensor& dx) override {
    moved("activate_backward", {&x, &dy, &dx},
          [&] { to_->activate_backward(activation, x, dy, dx); });
  }

  void route(const Router& how, In logits, In bias, Routes& routes) override {
    moved("route", {&logits, &routes.weights}, [&] { to_->route(how, logits, bias, routes); });
  }
  void route_backward(const Router& how, In logits, const Routes& routes, In dweights,
                      Tensor& dlogits) override {
    moved("route_backward", {&logits, &dweights, &dlogits},
          [&] { to_->route_backward(how, logits, routes, dweights, dlogits); });
  }
  void drop_choices(std::int64_t capacity, DropPolicy policy, Routes& routes) override {
    moved("drop_choices", {&routes.weights}, [&] { to_->drop_choices(capacity, policy, routes); });
  }
  void add_router_sums(const Router& how, In logits, const Routes& routes,
                       std::span<const std::int32_t> offsets, std::span<RouterSums> sums,
                       bool shares) override {
    moved("add_router_sums", {&logits},
          [&] { to_->add_router_sums(how, logits, routes, offsets, sums, shares); });
  }
  void add_router_slopes(const Router& how, In logits, const RouterSlopes& slopes,
                         Tensor& dlogits) override {
    moved("add_router_slopes", {&logits, &dlogits},
          [&] { to_->add_router_slopes(how, logits, slopes, dlogits); });
  }
  void permute(In x, const Routes& routes, Tensor& rows) override {
    moved("permute", {&rows, &rows}, [&] { to_->permute(x, routes, rows); });
  }
  void permute_backward(In rows, const Routes& routes, Tensor& sums) override {
    moved("permute_backward", {&rows, &sums}, [&] { to_->permute_backward(rows, routes, sums); });
  }
  // The bytes are those of one expert's matrix: which experts have rows, only the device knows.
  void ragged_gemm(const Routes& routes, In a, std::span<const Tensor> b, Tensor& c,
                   Gemm how) override {
    computed(
        "ragged_gemm", {&a, &b.front(), &c}, [&] { return gemm_work(a, b.front(), c, how); },
        [&] { to_->ragged_gemm(routes, a, b, c, how); });
  }
  void ragged_gradients(const Routes& routes, In dc, In a, const RaggedGradients& to,
                        Precision precision) override {
    computed(
        "ragged_gradients", {&dc, &a, &to.sums.front()},
        [&] {
          return gemm_work(dc, a, to.sums.front(), {.transpose_a = true, .precision = precision});
        },
        [&] { to_->ragged_gradients(routes, dc, a, to, precision); });
  }
  void combine(const Combination& in, Tensor& y) override {
    moved("combine", {&in.outputs, in.shared, &y}, [&] { to_->combine(in, y); });
  }
  void combine_backward(const Combination& in, In dy, const CombinationGradients& to) override {
    moved("combine_backward", {&in.outputs, &dy, &to.outputs, to.shared},
          [&] { to_->combine_backward(in, dy, to); });
  }

  void head(const HeadInputs& in, const HeadOutputs& out) override {
    computed(
        "head", {&in.hidden, &in.weight}, [&] { return head_work(in); },
        [&] { to_->head(in, out); });
  }
  void head_backward(const HeadInputs& in, const HeadSaved& saved, const HeadUpstream& up,
                     const HeadGradients& to) override {
    const bool has_logits = saved.kept != nullptr && *saved.kept;
    computed(
        "head_backward", {&in.hidden, &in.weight},
        [&] { return head_backward_work(in, to.dweight, has_logits); },
        [&] { to_->head_backward(in, saved, up, to); });
  }
  void head_forward_backward(const HeadInputs& in, const HeadUpstream& up, const HeadOutputs& out,
                             const HeadGradients& to) override {
    computed(
        "head_forward_backward", {&in.hidden, &in.weight},
        [&] { return head_backward_work(in, to.dweight, false); },
        [&] { to_->head_forward_backward(in, up, out, to); });
  }
  void scale_logits(Tensor& logits, const HeadScale& scale) override {
    moved("scale_logits", {&logits, &logits}, [&] { to_->scale_logits(logits, scale); });
  }
  void token_logprob(In logits, Rows targets, float inv_temperature, Tensor& logp, Tensor& lse,
                     const ColumnMask* columns) override {
    moved("token_logprob", {&logits, &logp, &lse},
          [&] { to_->token_logprob(logits, targets, inv_temperature, logp, lse, columns); });
  }
  void sample(In logits, const SamplingRows& rows, const SamplingOutputs& out) override {
    moved("sample", {&logits, out.logp, out.lse}, [&] { to_->sample(logits, rows, out); });
  }

  void adamw(Tensor& values, Tensor& grads, Tensor& m, Tensor& v, const AdamW& how) override {
    moved("adamw", {&values, &values, &grads, &m, &m, &v, &v},
          [&] { to_->adamw(values, grads, m, v, how); });
  }
  void round_to_bf16(Tensor& x, const StochasticRounding& how) override {
    moved("round_to_bf16", {&x, &x}, [&] { to_->round_to_bf16(x, how); });
  }
  void store_bf16(In from, Tensor& to, const StochasticRounding& how,
                  const FlatPart& part) override {
    moved("store_bf16", {&from, &to}, [&] { to_->store_bf16(from, to, how, part); });
  }
  double sum_of_squares(In x) override {
    return moved("sum_of_squares", {&x}, [&] { return to_->sum_of_squares(x); });
  }
  bool all_finite(In x) override {
    return moved("all_finite", {&x}, [&] { return to_->all_finite(x); });
  }

 private:
  template <class Call>
  std::invoke_result_t<Call> moved(std::string_view name, Operands operands, const Call& call) {
    return computed(
        name, operands, [&] { return Work{.bytes = operand_bytes(operands)}; }, call);
  }
  template <class Measure, class Call>
  std::invoke_result_t<Call> computed(std::string_view name, Operands operands, const Measure& work,
                                      const Call& call) {
    const ScopedSpan span(&spans_, [&] {
      return SpanStart{SpanKind::op, name, work(),
                       spans_.wants_shapes() ? shapes_of(operands) : std::string()};
    });
    return call();
  }

  std::shared_ptr<Device> to_;
  Spans& spans_;
};

}  // namespace

std::unique_ptr<Device> make_profiled_device(std::shared_ptr<Device> inner, Spans& spans) {
  return std::make_unique<ProfiledDevice>(std::move(inner), spans);
}

}  // namespace troupe::engine::ops
