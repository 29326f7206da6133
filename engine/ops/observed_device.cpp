#include "engine/ops/observed_device.h"

#include <array>
#include <utility>
#include <vector>

namespace troupe::engine::ops {
namespace {

using Rows = const Indices&;
using In = const Tensor&;

class ObservedDevice final : public Device {
 public:
  ObservedDevice(std::shared_ptr<Device> inner, CallObserver& observer)
      : to_(std::move(inner)), observer_(observer) {}

  Tensor empty(Shape shape, DType type) override { return to_->empty(shape, type); }
  void upload(Tensor& to, std::span<const float> values) override { to_->upload(to, values); }
  void upload_from(Tensor& to, const Source& source) override { to_->upload_from(to, source); }
  void download(In from, std::span<float> values) override { to_->download(from, values); }
  void visit_rows(In from, const RowVisitor& visit) override { to_->visit_rows(from, visit); }
  void fill(Tensor& x, float value) override { to_->fill(x, value); }
  void copy(In from, Tensor& to) override {
    to_->copy(from, to);
    show("copy", {&to}, &from);
  }
  MemoryUse memory() const override { return to_->memory(); }
  Indices indices(std::span<const std::int32_t> numbers) override { return to_->indices(numbers); }
  RowIds row_ids(std::span<const std::uint64_t> ids) override { return to_->row_ids(ids); }
  void synchronize() override { to_->synchronize(); }

  void gemm(In a, In b, Tensor& c, Gemm how) override {
    to_->gemm(a, b, c, how);
    if (!how.transpose_a) show("gemm", {&c}, &a);  // otherwise a gradient of a weight
  }
  void grouped_gemm(std::span<GemmCall> calls) override {
    to_->grouped_gemm(calls);
    for (GemmCall& call : calls)
      if (!call.how.transpose_a) show("gemm", {&call.c}, &call.a);
  }
  void pack(In weight, DType type, Tensor& packed) override { to_->pack(weight, type, packed); }
  void add_bias(Tensor& y, In bias) override {
    to_->add_bias(y, bias);
    show("add_bias", {&y});
  }
  void bias_backward(In dy, Tensor& dbias) override { to_->bias_backward(dy, dbias); }
  void add(In a, In b, Tensor& sum) override {
    to_->add(a, b, sum);
    show("add", {&sum}, &a);
  }
  void scale(Tensor& x, float factor) override {
    to_->scale(x, factor);
    show("scale", {&x});
  }
  void dropout(In x, const Dropout& how, Tensor& y) override {
    to_->dropout(x, how, y);
    show("dropout", {&y}, &x);
  }
  void scale_columns(Tensor& x, In factors) override {
    to_->scale_columns(x, factors);
    show("scale_columns", {&x});
  }
  void column_dots(In a, In b, Tensor& sums) override { to_->column_dots(a, b, sums); }
  void row_squares(In x, Tensor& sums) override { to_->row_squares(x, sums); }

  void gather_rows(In from, Rows rows, Tensor& to) override {
    to_->gather_rows(from, rows, to);
    show("gather_rows", {&to}, &from);
  }
  void scatter_rows(In from, Rows rows, Tensor& to) override {
    to_->scatter_rows(from, rows, to);
    for (const std::int32_t row : rows.host) {
      if (row < 0) continue;
      Tensor written = to.rows(row, row + 1);
      return show("scatter_rows", {&written}, &from);
    }
  }
  void scatter_add_rows(In from, Rows rows, Tensor& table) override {
    to_->scatter_add_rows(from, rows, table);
  }

  void rms_norm(In x, In gain, float eps, Tensor& y, Tensor& inv_rms, float offset) override {
    to_->rms_norm(x, gain, eps, y, inv_rms, offset);
    show("rms_norm", {&y}, &x);
  }
  void rms_norm_backward(In x, In gain, In inv_rms, In dy, Tensor& dx, Tensor& dgain,
                         float offset) override {
    to_->rms_norm_backward(x, gain, inv_rms, dy, dx, dgain, offset);
  }
  void layer_norm(In x, In gain, In bias, float eps, Tensor& y, Tensor& mean,
                  Tensor& inv_std) override {
    to_->layer_norm(x, gain, bias, eps, y, mean, inv_std);
    show("layer_norm", {&y}, &x);
  }
  void layer_norm_backward(In x, In gain, In mean, In inv_std, In dy, Tensor& dx,
                           Tensor& dgain) override {
    to_->layer_norm_backward(x, gain, mean, inv_std, dy, dx, dgain);
  }
  void rope(Tensor& x, Rows positions, In cos, In sin, int heads, bool inverse) override {
    to_->rope(x, positions, cos, sin, heads, inverse);
    if (!inverse) show("rope", {&x});
  }

  void attention(const AttentionInputs& in, Tensor& out, Tensor* lse) override {
    to_->attention(in, out, lse);
    show("attention", {&out}, &in.q);
  }
  void attention_backward(const AttentionInputs& in, const AttentionBackward& with) override {
    to_->attention_backward(in, with);
  }
  int parallel_kv_heads() const override { return to_->parallel_kv_heads(); }

  void gated(Activation activation, In gate, In up, Tensor& y) override {
    to_->gated(activation, gate, up, y);
    show("gated", {&y}, &gate);
  }
  void gated_backward(Activation activation, In gate, In up, In dy, Tensor& dgate, Tensor& dup,
                      Tensor* y) override {
    to_->gated_backward(activation, gate, up, dy, dgate, dup, y);
  }
  void activate(Activation activation, In x, Tensor& y) override {
    to_->activate(activation, x, y);
    show("activate", {&y}, &x);
  }
  void activate_backward(Activation activation, In x, In dy, Tensor& dx) override {
    to_->activate_backward(activation, x, dy, dx);
  }

  void route(const Router& how, In logits, In bias, Routes& routes) override {
    to_->route(how, logits, bias, routes);
    show("route", {&routes.weights}, &logits);
  }
  void route_backward(const Router& how, In logits, const Routes& routes, In dweights,
                      Tensor& dlogits) override {
    to_->route_backward(how, logits, routes, dweights, dlogits);
  }
  void drop_choices(std::int64_t capacity, DropPolicy policy, Routes& routes) override {
    to_->drop_choices(capacity, policy, routes);
  }
  void add_router_sums(const Router& how, In logits, const Routes& routes,
                       std::span<const std::int32_t> offsets, std::span<RouterSums> sums,
                       bool shares) override {
    to_->add_router_sums(how, logits, routes, offsets, sums, shares);
  }
  void add_router_slopes(const Router& how, In logits, const RouterSlopes& slopes,
                         Tensor& dlogits) override {
    to_->add_router_slopes(how, logits, slopes, dlogits);
  }
  // Rows that are sorted by experts are not those of tokens: combine() shows their sums.
  void permute(In x, const Routes& routes, Tensor& rows) override { to_->permute(x, routes, rows); }
  void permute_backward(In rows, const Routes& routes, Tensor& sums) override {
    to_->permute_backward(rows, routes, sums);
  }
  void ragged_gemm(const Routes& routes, In a, std::span<const Tensor> b, Tensor& c,
                   Gemm how) override {
    to_->ragged_gemm(routes, a, b, c, how);
  }
  void ragged_gradients(const Routes& routes, In dc, In a, const RaggedGradients& to,
                        Precision precision) override {
    to_->ragged_gradients(routes, dc, a, to, precision);
  }
  void combine(const Combination& in, Tensor& y) override {
    to_->combine(in, y);
    show("combine", {&y}, &in.outputs);
  }
  void combine_backward(const Combination& in, In dy, const CombinationGradients& to) override {
    to_->combine_backward(in, dy, to);
  }

  void head(const HeadInputs& in, const HeadOutputs& out) override {
    to_->head(in, out);
    show_scores("head", out, &in.hidden, in.targets.host);
  }
  void head_backward(const HeadInputs& in, const HeadSaved& saved, const HeadUpstream& up,
                     const HeadGradients& to) override {
    to_->head_backward(in, saved, up, to);
  }
  void head_forward_backward(const HeadInputs& in, const HeadUpstream& up, const HeadOutputs& out,
                             const HeadGradients& to) override {
    to_->head_forward_backward(in, up, out, to);
    show_scores("head_forward_backward", out, &in.hidden, in.targets.host);
  }
  void scale_logits(Tensor& logits, const HeadScale& scale) override {
    to_->scale_logits(logits, scale);
    show("scale_logits", {&logits});
  }
  void token_logprob(In logits, Rows targets, float inv_temperature, Tensor& logp, Tensor& lse,
                     const ColumnMask* columns) override {
    to_->token_logprob(logits, targets, inv_temperature, logp, lse, columns);
    show_scores("token_logprob", {logp, lse}, &logits, targets.host);
  }
  void sample(In logits, const SamplingRows& rows, const SamplingOutputs& out) override {
    to_->sample(logits, rows, out);
    if (out.logp != nullptr && out.lse != nullptr)
      show_scores("sample", {*out.logp, *out.lse}, &logits, out.ids);
  }

  void adamw(Tensor& values, Tensor& grads, Tensor& m, Tensor& v, const AdamW& how) override {
    to_->adamw(values, grads, m, v, how);
  }
  void round_to_bf16(Tensor& x, const StochasticRounding& how) override {
    to_->round_to_bf16(x, how);
  }
  void store_bf16(In from, Tensor& to, const StochasticRounding& how,
                  const FlatPart& part) override {
    to_->store_bf16(from, to, how, part);
  }
  double sum_of_squares(In x) override { return to_->sum_of_squares(x); }
  bool all_finite(In x) override { return to_->all_finite(x); }

 private:
  void show(std::string_view op, std::initializer_list<Tensor*> outputs, const Tensor* input = {}) {
    observer_.computed({op, {outputs.begin(), outputs.size()}, input}, *to_);
  }
  void show_scores(std::string_view op, const HeadOutputs& out, const Tensor* input,
                   std::span<const std::int32_t> targets) {
    const std::array<Tensor*, 3> all{&out.logp, &out.lse, out.entropy};
    const std::size_t count = out.entropy == nullptr ? 2 : 3;
    observer_.computed({op, std::span(all).first(count), input, targets}, *to_);
  }

  std::shared_ptr<Device> to_;
  CallObserver& observer_;
};

}  // namespace

std::unique_ptr<Device> make_observed_device(std::shared_ptr<Device> inner,
                                             CallObserver& observer) {
  return std::make_unique<ObservedDevice>(std::move(inner), observer);
}

}  // namespace troupe::engine::ops
