// LoraRows: adapters beside a model without one of its own, each for some rows of a pass (Chen et
// al. 2023, Punica, arXiv:2310.18547). All rows share the products with the model's weights, and
// each adapter adds its low-rank products to its rows, which get the bits that they have in a model
// with this adapter alone.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/collectives/tensor_group.h"
#include "engine/nn/forward_context.h"
#include "engine/nn/lora.h"
#include "engine/nn/parameters.h"

namespace troupe::engine::nn {

/// An adapter that several models of a process may use at once: it does not change.
class LoraModel {
 public:
  /// `tensors`: the adapter's; `by_weight`: its modules by the weights of the model, into
  /// `tensors`.
  LoraModel(Parameters tensors, std::unordered_map<const Parameter*, Lora> by_weight);

  /// The adapter of a weight, or nullptr.
  const Lora* find(const Parameter& weight) const;
  /// Unique in the process: another adapter never has it, also when this one is gone.
  std::uint64_t number() const { return number_; }
  std::int64_t parameters() const { return tensors_.count(); }  ///< of this rank

 private:
  Parameters tensors_;
  std::unordered_map<const Parameter*, Lora> by_weight_;
  std::uint64_t number_;
};

struct LoraRows {
  /// Consecutive rows of one adapter.
  struct Run {
    std::int64_t begin = 0, end = 0;
    const LoraModel* adapter = nullptr;
  };
  std::vector<Run> runs;

  /// The next `count` rows, from number `begin`, use `adapter`; nullptr: none.
  void add(std::int64_t begin, std::int64_t count, const LoraModel* adapter);
  /// Turns y = x W^T [T, F] into the adapted outputs of the rows that use an adapter of `weight`,
  /// W. x [T, D]; `tp`: the ranks that have the other columns of W.
  void apply(const Parameter& weight, const Tensor& x, const ForwardContext& pass,
             collectives::TensorGroup* tp, const Tensor& y) const;
};

}  // namespace troupe::engine::nn
