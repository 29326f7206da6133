// Parameters: every weight of a model, under its Hugging Face name, in one flat arena of values and
// one of gradients (of the trained ones). Optimizer, checkpoints and weight publication use flat
// ranges or iterate over all(); modules hold references into it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/nn/lookup_gradient.h"
#include "engine/ops/device.h"
#include "engine/parallel/shard.h"

namespace troupe::engine::nn {

/// State of a gradient. Clearing the gradient of a layer's weight would cost a pass over memory: it
/// is marked unset after an update instead, and the first GEMM that computes it assigns it.
struct GradientState {
  /// GEMMs that call Parameter::next_gemm_accumulates() compute all of it; any other code that adds
  /// to it calls Parameter::zero_if_unset() first.
  bool assigned_by_gemm = false;
  bool unset = false;  ///< counts as zero, whatever the memory holds
  /// Gradient through the lookup of a tied table, which grad does not contain; or nullptr.
  std::unique_ptr<LookupGradient> lookup = {};
};

/// Type of the trained weights between updates. split is stored as f32: its upper half is the bf16
/// part and its lower half the residual (docs/decisions/0027-weights-in-two-bytes.md).
enum class WeightType : std::uint8_t { f32, split, bf16 };
constexpr std::array<std::string_view, 3> names_of(WeightType) {
  return {"f32", "split", "bf16"};
}
/// Type of the gradients and of the optimizer state.
enum class StateType : std::uint8_t { f32, bf16 };
constexpr std::array<std::string_view, 2> names_of(StateType) {
  return {"f32", "bf16"};
}
constexpr DType stored(WeightType type) {
  return type == WeightType::bf16 ? DType::bf16 : DType::f32;
}
constexpr DType stored(StateType type) {
  return type == StateType::bf16 ? DType::bf16 : DType::f32;
}

/// Element types of values and gradients, f32 or bf16. The operations of modules are in f32: a bf16
/// value is widened for an operation; a gradient is widened, added to, and rounded to the nearest
/// bf16 (GradientSum).
struct ValueTypes {
  DType values = DType::f32, grads = DType::f32;
};

struct Parameter {
  std::string name;  ///< "model.layers.0.self_attn.q_proj.weight"
  Tensor value;
  Tensor grad;                 ///< absent in models that are never trained, and for frozen weights
  parallel::Shard shard = {};  ///< the part of the logical tensor that `value` is
  bool trainable = true;
  bool adapter = false;  ///< belongs to an adapter: model files do not contain it
  /// `value` as Device::pack packed it last (models::PackedWeights), or absent.
  Tensor packed = {};
  std::shared_ptr<GradientState> state = {};  ///< of grad, or absent

  /// Whether the next GEMM of the weight's gradient adds to grad; the first one after an update
  /// assigns. Changes the state: call it exactly once per GEMM.
  bool next_gemm_accumulates() const;
  /// Fills an unset gradient with zeros. Call it before adding to a part of grad.
  void zero_if_unset(ops::Device& device) const;
  /// Makes grad the whole gradient: zeros where it is unset, and the sum of the lookup added. Call
  /// it before reading grad.
  void complete_gradient(ops::Device& device) const;
  /// Shape of the whole tensor, as checkpoints store it.
  Shape logical_shape() const;
  /// The value in f32: `value`, or a copy of a bf16 one.
  Tensor f32(ops::Device& device) const;
  /// The GEMM y = x value^T: x [T, D], y [T, F]. With `use_packed`, reads the packed weight where
  /// there is one, in bf16.
  ops::GemmCall linear_call(ops::Device& device, const Tensor& x, ops::Precision precision,
                            bool use_packed, const Tensor& y) const;
  void linear(ops::Device& device, const Tensor& x, ops::Precision precision, bool use_packed,
              Tensor& y) const;
  /// Whether weight decay applies: to matrices, not to vectors (norm gains, biases).
  bool decays() const { return value.shape().rank() >= 2; }
};

/// A gradient in f32 to which operations add: Parameter::grad itself or, for one in bf16, a copy,
/// which finish() rounds and stores.
class GradientSum {
 public:
  /// `accumulates` false: the first operation assigns the gradient.
  GradientSum(ops::Device& device, const Tensor& grad, bool accumulates = true);
  Tensor& f32() { return sum_; }
  void finish();

 private:
  ops::Device& device_;
  Tensor grad_, sum_;
};

/// A parameter to allocate.
struct ParameterSpec {
  std::string name;
  Shape shape;  ///< of this rank's part
  parallel::Shard shard = {};
  bool trainable = true, adapter = false;
};

class Parameters {
 public:
  /// Allocates `specs` in order; frozen parameters come first. Values are undefined, gradients
  /// zero.
  Parameters(ops::Device& device, const std::vector<ParameterSpec>& specs, bool with_gradients,
             ValueTypes types = {});
  /// Names and shapes alone, without memory: values must not be read or written.
  static Parameters described(ops::Device& device, const std::vector<ParameterSpec>& specs);

  std::vector<Parameter>& all() { return all_; }
  const std::vector<Parameter>& all() const { return all_; }
  Parameter& at(std::string_view name);    ///< a Bug when absent
  Parameter* find(std::string_view name);  ///< nullptr when absent
  const Parameter* find(std::string_view name) const;

  /// The trained parameters as a set of their own over the same memory; this set where nothing is
  /// frozen. Optimizers, published weights and checkpointed moments contain only these.
  Parameters& trained() { return trained_ ? *trained_ : *this; }
  const Parameters& trained() const { return trained_ ? *trained_ : *this; }

  Tensor& values() { return values_; }  ///< [count()] the arena
  const Tensor& values() const { return values_; }
  Tensor& grads();  ///< [trained().count()], complete; or absent
  const Tensor& gradient_arena() const { return grads_; }  ///< grads(), complete or not
  /// Completes all gradients. Call it before reading them one by one.
  void complete_gradients();
  std::int64_t count() const { return count_; }
  ops::Device& device() const { return *device_; }

 private:
  explicit Parameters(ops::Device& device) : device_(&device) {}
  void place(const std::vector<ParameterSpec>& specs, std::int64_t frozen);
  void add(Parameter parameter);

  ops::Device* device_;
  std::int64_t count_ = 0;
  Tensor values_, grads_;
  std::vector<Parameter> all_;
  std::unordered_map<std::string, std::size_t> index_;
  std::unique_ptr<Parameters> trained_;
};

/// into <- (1 - weight) into + weight from, value by value in f32 (torch.lerp): equal bits whatever
/// the layout. Both are models of one shape and grid.
void lerp(const Parameters& from, double weight, Parameters& into);

}  // namespace troupe::engine::nn
