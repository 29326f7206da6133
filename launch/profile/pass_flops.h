// FLOPs of the passes that a run asks its models for: the numerators of MFU and HFU.
#pragma once

#include <map>

#include "algorithms/training/work.h"
#include "engine/models/flops.h"
#include "engine/nn/forward_context.h"

namespace troupe::launch::profile {

struct PassFlops {
  double model = 0;     ///< what the method needs
  double hardware = 0;  ///< with what the backward pass computes again
};

/// A model and how it is trained.
struct CountedModel {
  engine::models::ForwardFlops forward;
  /// Products of a backward pass per product of the forward pass: 2, the gradients of the input and
  /// of the weight; 1 where the weights are frozen below an adapter.
  double backward = 2;
};
CountedModel counted(const engine::models::DecoderSpec& spec);

class PassCounter {
 public:
  /// `models`: those of the run; the passes of others are counted as the policy's. `layers_again`:
  /// share of the layers that Recompute::full recomputes.
  PassCounter(std::map<algorithms::PassModel, CountedModel> models,
              const engine::nn::Recomputed& recomputed, double layers_again = 1);

  /// A training pass is (1 + backward) forward passes, of attention always 3. Recomputation adds
  /// what train.recompute names, and the scores of attention, which the backward pass computes
  /// again. Sequences with a common prefix are counted whole.
  PassFlops operator()(const algorithms::ModelPass& pass) const;

 private:
  std::map<algorithms::PassModel, CountedModel> models_;
  engine::nn::Recomputed recomputed_;
  double layers_again_;
};

}  // namespace troupe::launch::profile
