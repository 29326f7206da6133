// Parameters: every weight of a model, in one flat arena of values and, of those that are trained,
// one of gradients, each under its Hugging Face name. Optimizer, checkpoints and weight publication
// see flat ranges or walk all(); modules hold references into it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/ops/device.h"
#include "engine/parallel/shard.h"

namespace troupe::engine::nn {

/// How a gradient stands. Clearing one would be a pass over memory, so that of a layer's weight is
/// left as it is after an update, and the first product that makes a part of it assigns it.
struct GradientState {
  bool by_product = false;  ///< products that ask Parameter::adds() make all of it, and what else
                            ///< adds to it asks Parameter::settle()
  bool unset = false;       ///< counts as zero, whatever it holds
};

struct Parameter {
  std::string name;  ///< "model.layers.0.self_attn.q_proj.weight"
  Tensor value;
  Tensor grad;                 ///< absent in models that are never trained, and of what is frozen
  parallel::Shard shard = {};  ///< the part of the logical tensor that `value` is
  bool trainable = true;
  bool adapter = false;  ///< of an adapter: model files do not hold it
  Tensor packed = {};    ///< value as Device::pack made it when it was last asked to, or absent
                         ///< (models::PackedWeights)
  std::shared_ptr<GradientState> state = {};  ///< of grad, or absent
  /// Whether the next product of its layer is to be added to grad; the first one after an update is
  /// assigned. To be asked once before each.
  bool adds() const;
  /// Fills grad with zeros where it counts as such: for whoever reads it, or adds to a part of it.
  void settle(ops::Device& device) const;
  /// The shape of the whole tensor, as checkpoints store it.
  Shape logical_shape() const;
  /// y = x value^T: x [T, D], y [T, F]. `from_packed`: of the packed weight, where there is one; in
  /// bf16 then.
  ops::GemmCall product(const Tensor& x, ops::Precision precision, bool from_packed,
                        const Tensor& y) const;
  void multiply(ops::Device& device, const Tensor& x, ops::Precision precision, bool from_packed,
                Tensor& y) const;
  /// Matrices decay, vectors (norm gains, biases) do not.
  bool decays() const { return value.shape().rank() >= 2; }
};

class Parameters {
 public:
  struct Wanted {
    std::string name;
    Shape shape;  ///< of this rank's part
    parallel::Shard shard = {};
    bool trainable = true, adapter = false;
  };
  /// Allocates all of `wanted`, in that order, what is frozen first; values are undefined,
  /// gradients zero.
  Parameters(ops::Device& device, const std::vector<Wanted>& wanted, bool with_gradients);

  std::vector<Parameter>& all() { return all_; }
  const std::vector<Parameter>& all() const { return all_; }
  Parameter& at(std::string_view name);    ///< a Bug when absent
  Parameter* find(std::string_view name);  ///< nullptr when absent
  const Parameter* find(std::string_view name) const;

  /// Those that are trained, as a set of its own over the same memory; this one where nothing is
  /// frozen. Optimizers, published weights and what a checkpoint keeps of the moments see only it.
  Parameters& trained() { return trained_ ? *trained_ : *this; }
  const Parameters& trained() const { return trained_ ? *trained_ : *this; }

  Tensor& values() { return values_; }  ///< [count()] the arena
  const Tensor& values() const { return values_; }
  Tensor& grads();  ///< [trained().count()], or absent; with zeros where nothing was added since
                    ///< the last update
  /// Fills those gradients with zeros: for whoever reads them one by one.
  void settle_gradients();
  std::int64_t count() const { return count_; }
  ops::Device& device() const { return *device_; }

 private:
  explicit Parameters(ops::Device& device) : device_(&device) {}
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
