// Mixture: a feed-forward block of experts, of which a router chooses some for every row (Shazeer
// et al. 2017, arXiv:1701.06538), with an optional shared expert that has all rows (Dai et al.
// 2024, arXiv:2401.06066).
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "engine/nn/expert_lora.h"
#include "engine/nn/mlp.h"
#include "engine/nn/router_balance.h"

namespace troupe::engine::nn {

/// Weights of one projection, an expert each: [E] of [F, D]. The products are without biases.
class ExpertProjection {
 public:
  ExpertProjection() = default;
  explicit ExpertProjection(std::vector<const Parameter*> experts) : experts_(std::move(experts)) {}

  std::int64_t outputs() const { return experts_.front()->value.shape()[0]; }
  std::int64_t inputs() const { return experts_.front()->value.shape()[1]; }
  /// y [M, F] of x [M, D], rows as in `routes`. Saves what its adapter needs.
  Tensor forward(const Tensor& x, const ops::Routes& routes, const ForwardContext& pass,
                 Saved& saved) const;
  /// dx [M, D] (+)= the gradient of the input; adds to the gradients of the weights. `x` is absent
  /// where they are frozen.
  void backward(const Tensor& dy, const Tensor& x, const ops::Routes& routes,
                const ForwardContext& pass, Saved& saved, Tensor& dx, bool accumulate) const;
  bool trains() const { return static_cast<bool>(experts_.front()->grad); }
  /// Whether backward() needs the input.
  bool needs_input() const { return trains() || lora; }

  ExpertLora lora = {};

 private:
  std::vector<const Parameter*> experts_;
};

struct Mixture {
  ops::Router how;
  Linear router;                           ///< [E, D]; its products are always in f32
  const Parameter* choice_bias = nullptr;  ///< [E] of choice values, without a gradient; or nullptr
  ExpertProjection gate, up, down;
  ExpertLora gate_up = {};  ///< one adapter of `gate` and `up`: PEFT's of experts.gate_up_proj
  ops::Activation activation = ops::Activation::silu;
  std::optional<Mlp> shared;
  std::optional<Linear> shared_gate;  ///< [1, D]: sigmoid of it multiplies the shared expert
  /// Ranks that each have some inner channels of every expert; nullptr: this rank has all.
  collectives::TensorGroup* tp = nullptr;
  RouterBalance* balance = nullptr;  ///< of the model, in which this is `layer`; nullptr: none
  std::size_t layer = 0;

  /// [T, D] -> [T, D]. A row of the result depends on that row of x only.
  Tensor forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const;
  Tensor backward(const Tensor& dy, const ForwardContext& pass, Saved& saved) const;

 private:
  ops::Routes empty_routes(ops::Device& device, std::int64_t tokens) const;
  /// Values inside the experts, M rows each.
  struct Inner {
    Tensor up, gate, activated, rows;
  };
  bool keeps_activated(const ForwardContext& pass) const;
  bool needs_rows() const { return gate.needs_input() || up.needs_input() || gate_up; }
  void push_inner(const Inner& inner, const ForwardContext& pass, Saved& saved) const;
  Inner pop_inner(const ForwardContext& pass, Saved& saved) const;
  /// Gate and up projections of rows [M, D].
  std::pair<Tensor, Tensor> projected(const Tensor& rows, const ops::Routes& routes,
                                      const ForwardContext& pass, Saved& saved) const;
  Tensor experts_backward(const Tensor& doutputs, const Inner& inner, const ops::Routes& routes,
                          const ForwardContext& pass, Saved& saved) const;
};

}  // namespace troupe::engine::nn
