#include "engine/nn/parameters.h"

#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::engine::nn {

Shape Parameter::logical_shape() const {
  const Shape& part = value.shape();
  if (shard.whole()) return part;
  check(part.rank() <= 2, "Parameter: only vectors and matrices can be sharded");
  if (part.rank() == 1) return Shape{shard.full};
  return shard.axis == 0 ? Shape{shard.full, part[1]} : Shape{part[0], shard.full};
}

bool Parameter::next_gemm_accumulates() const {
  if (!state) return true;
  state->assigned_by_gemm = true;
  return !std::exchange(state->unset, false);
}

void Parameter::zero_if_unset(ops::Device& device) const {
  Tensor all = grad;
  if (state && std::exchange(state->unset, false)) device.fill(all, 0);
}

void Parameter::complete_gradient(ops::Device& device) const {
  zero_if_unset(device);
  if (!state || !state->lookup || state->lookup->empty()) return;
  GradientSum all(device, grad);
  state->lookup->move_to(all.f32());
  all.finish();
}

GradientSum::GradientSum(ops::Device& device, const Tensor& grad, bool accumulates)
    : device_(device), grad_(grad), sum_(grad) {
  if (!grad || grad.dtype() == DType::f32) return;
  sum_ = device.empty(grad.shape());
  if (accumulates) device.copy(grad, sum_);
}

void GradientSum::finish() {
  if (grad_ && grad_.dtype() != DType::f32) device_.copy(sum_, grad_);
}

Tensor Parameter::f32(ops::Device& device) const {
  if (value.dtype() == DType::f32) return value;
  Tensor wide = device.empty(value.shape());
  device.copy(value, wide);
  return wide;
}

ops::GemmCall Parameter::linear_call(ops::Device& device, const Tensor& x, ops::Precision precision,
                                     bool use_packed, const Tensor& y) const {
  const bool read_packed = use_packed && packed;
  return {x,
          read_packed ? packed : f32(device),
          y,
          {.transpose_b = true, .precision = read_packed ? ops::Precision::bf16 : precision}};
}

void Parameter::linear(ops::Device& device, const Tensor& x, ops::Precision precision,
                       bool use_packed, Tensor& y) const {
  const ops::GemmCall call = linear_call(device, x, precision, use_packed, y);
  device.gemm(call.a, call.b, y, call.how);
}

Tensor& Parameters::grads() {
  complete_gradients();
  return grads_;
}

void Parameters::complete_gradients() {
  for (const auto& parameter : all_) parameter.complete_gradient(*device_);
}

namespace {

/// Sizes of a list: all values, and those that are frozen, which come first.
struct Counts {
  std::int64_t all = 0, frozen = 0;
  explicit Counts(const std::vector<ParameterSpec>& specs) {
    for (const auto& w : specs) {
      check(w.trainable || frozen == all, "Parameters: frozen tensors come first");
      all += w.shape.count();
      if (!w.trainable) frozen = all;
    }
  }
};

}  // namespace

Parameters::Parameters(ops::Device& device, const std::vector<ParameterSpec>& specs,
                       bool with_gradients, ValueTypes types)
    : device_(&device) {
  const Counts counts(specs);
  values_ = device.empty(Shape{counts.all}, types.values);
  if (with_gradients) {
    grads_ = device.empty(Shape{counts.all - counts.frozen}, types.grads);
    device.fill(grads_, 0);
  }
  place(specs, counts.frozen);
}

Parameters Parameters::described(ops::Device& device, const std::vector<ParameterSpec>& specs) {
  const Counts counts(specs);
  Parameters out(device);
  // A buffer of no device: it has a size, but no memory.
  const auto none = std::make_shared<Buffer>(static_cast<std::size_t>(counts.all) * sizeof(float));
  out.values_ = Tensor(none, 0, Shape{counts.all}, DType::f32);
  out.place(specs, counts.frozen);
  return out;
}

void Parameters::place(const std::vector<ParameterSpec>& specs, std::int64_t frozen) {
  for (const auto& w : specs) {
    const std::int64_t at = count_, end = at + w.shape.count();
    check(w.shard.whole() || w.shape[w.shard.axis] == w.shard.end - w.shard.begin,
          "Parameters: a shape does not match its shard");
    Parameter parameter{w.name,   values_.flat(at, end).view(w.shape), {}, w.shard, w.trainable,
                        w.adapter};
    if (grads_ && w.trainable) {
      parameter.grad = grads_.flat(at - frozen, end - frozen).view(w.shape);
      parameter.state = std::make_shared<GradientState>();
    }
    add(std::move(parameter));
    count_ = end;
  }
  if (frozen == 0) return;
  trained_.reset(new Parameters(*device_));
  trained_->count_ = count_ - frozen;
  trained_->values_ = values_.flat(frozen, count_);
  trained_->grads_ = grads_;
  for (const auto& parameter : all_)
    if (parameter.trainable) trained_->add(parameter);
}

void Parameters::add(Parameter parameter) {
  check(index_.emplace(parameter.name, all_.size()).second, "Parameters: duplicate name");
  all_.push_back(std::move(parameter));
}

Parameter* Parameters::find(std::string_view name) {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &all_[found->second];
}
const Parameter* Parameters::find(std::string_view name) const {
  return const_cast<Parameters*>(this)->find(name);
}

Parameter& Parameters::at(std::string_view name) {
  Parameter* found = find(name);
  check(found != nullptr, cat("Parameters: no ", name));
  return *found;
}

void lerp(const Parameters& from, double weight, Parameters& into) {
  check(from.count() == into.count(), "lerp: two models of different shapes");
  check(weight >= 0 && weight <= 1, "lerp: the weight must be in [0, 1]");
  const auto source = ops::to_host(from.device(), from.values());
  auto values = ops::to_host(into.device(), into.values());
  const auto added = static_cast<float>(weight), kept = static_cast<float>(1 - weight);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = kept * values[i] + added * source[i];
  into.device().upload(into.values(), values);
}

}  // namespace troupe::engine::nn
