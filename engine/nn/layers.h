// Layers: consecutive layers of a stage, of which Recompute::full recomputes groups.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "engine/nn/compose.h"
#include "engine/nn/offload.h"

namespace troupe::engine::nn {

/// Layers begin .. end - 1 of a stage. A recomputed group saves only its input and repeats its
/// forward pass in backward.
struct LayerGroup {
  std::size_t begin, end;
  bool recomputed;
  bool operator==(const LayerGroup&) const = default;
};

/// The groups of a stage with this many layers, in order. Without Recompute::full it is one.
inline std::vector<LayerGroup> layer_groups(const Recomputed& how, std::size_t layers) {
  if (layers == 0) return {};
  if (!how.has(Recompute::full)) return {{0, layers, false}};
  const auto count = static_cast<std::size_t>(how.layers);
  const bool block = how.method == RecomputeMethod::block;
  const std::size_t recomputed = block ? std::min(count, layers) : layers, size = block ? 1 : count;
  std::vector<LayerGroup> groups;
  for (std::size_t i = 0; i < recomputed; i += size)
    groups.push_back({i, std::min(i + size, recomputed), true});
  if (recomputed < layers) groups.push_back({recomputed, layers, false});
  return groups;
}

template <Module M>
class Layers {
 public:
  /// `first`: number of the first layer, for the hooks.
  explicit Layers(std::span<const M> layers, std::size_t first = 0)
      : layers_(layers), first_(first) {}

  /// Calls the hooks of a pass between layers, but not before the first one.
  Tensor forward(Tensor x, const ForwardContext& pass, Saved& saved) const {
    for (const LayerGroup& group : layer_groups(pass.recomputed, layers_.size())) {
      Saved none = Saved::nothing();
      std::size_t mark = saved.mark();
      if (group.recomputed) saved.push_input(x);
      Saved& into = group.recomputed ? none : saved;
      for (std::size_t i = group.begin; i < group.end; ++i) {
        if (i > 0 && pass.hooks && pass.hooks->before_forward)
          pass.hooks->before_forward(first_ + i);
        x = layers_[i].forward(x, pass, into);
        if (pass.offload == nullptr || (group.recomputed && i + 1 < group.end)) continue;
        pass.offload->unload(saved, std::exchange(mark, saved.mark()));
      }
    }
    return x;
  }
  /// Recomputes the group whose backward pass is the next one of those that are recomputed.
  void recompute_in_advance(const ForwardContext& pass, Saved& saved) const {
    const auto groups = layer_groups(pass.recomputed, layers_.size());
    const auto last = std::find_if(groups.rbegin(), groups.rend(),
                                   [](const LayerGroup& group) { return group.recomputed; });
    if (last == groups.rend()) return;
    if (pass.offload != nullptr) {
      if (last != groups.rbegin()) return;  // its input is in the file, below that of other layers
      pass.offload->load(saved);
    }
    saved.repeat_in_advance(again(*last, pass));
  }
  Tensor backward(Tensor dx, const ForwardContext& pass, Saved& saved) const {
    const auto groups = layer_groups(pass.recomputed, layers_.size());
    for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
      Saved own;
      if (group->recomputed) {
        if (pass.offload != nullptr && !saved.is_repeated()) pass.offload->load(saved);
        own = saved.repeated(again(*group, pass));
      }
      Saved& from = group->recomputed ? own : saved;
      for (std::size_t i = group->end; i-- > group->begin;) {
        if (pass.offload != nullptr && !group->recomputed) pass.offload->load(saved);
        dx = layers_[i].backward(dx, pass, from);
        if (pass.hooks && pass.hooks->after_backward) pass.hooks->after_backward(first_ + i);
      }
    }
    return dx;
  }

 private:
  auto again(const LayerGroup& group, const ForwardContext& pass) const {
    return [this, group, &pass](Tensor x, Saved& saved) {
      for (std::size_t i = group.begin; i < group.end; ++i) x = layers_[i].forward(x, pass, saved);
    };
  }

  std::span<const M> layers_;
  std::size_t first_;
};

}  // namespace troupe::engine::nn
