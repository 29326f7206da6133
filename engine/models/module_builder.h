// ModuleBuilder: the modules of a decoder's layers from its parameters, with their adapters.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/models/split.h"
#include "engine/nn/attention.h"
#include "engine/nn/layers.h"
#include "engine/nn/mixture.h"

namespace troupe::engine::models {

/// A sublayer with the norms around it; an absent norm is the identity.
template <nn::Module M>
using Sublayer = nn::Residual<nn::Normed<nn::Chain<M, nn::Norm>>>;
using Attention =
    nn::Either<nn::Attention<nn::PlainProjections>, nn::Attention<nn::LatentProjections>>;
using FeedForward = nn::Either<nn::Mlp, nn::Mixture>;
using SequentialLayer = nn::Chain<Sublayer<Attention>, Sublayer<FeedForward>>;
using ParallelLayer = nn::Residual<nn::Normed<nn::Sum<Attention, FeedForward>>>;
using TwoNormLayer = nn::Residual<nn::Sum<nn::Normed<Attention>, nn::Normed<FeedForward>>>;
using Block = nn::Either<SequentialLayer, ParallelLayer, TwoNormLayer>;
static_assert(nn::Module<Block>);

struct ModuleBuilder {
  nn::Parameters& parameters;
  const DecoderSpec& spec;
  const Split& split;
  collectives::TensorGroup* tp;
  const std::vector<nn::RotaryTable>& rotary;
  const bool& adapter_on;
  nn::RouterBalance& balance;
  /// Number of each adapter's module in spec.lora->targets; experts may be ten thousands.
  std::unordered_map<std::string_view, std::size_t> adapted = numbers_of(spec);

  static std::unordered_map<std::string_view, std::size_t> numbers_of(const DecoderSpec& spec);
  nn::Lora lora(const std::string& name) const;
  nn::Linear linear(const std::string& name, collectives::TensorGroup* group = nullptr) const {
    return {parameters.find(name + ".weight"), parameters.find(name + ".bias"), group, lora(name)};
  }
  nn::Norm norm(const std::string& name) const {  // the identity without a weight of that name
    return {.gain = parameters.find(name + ".weight"),
            .eps = static_cast<float>(spec.norm_eps),
            .kind = spec.layer_norm ? nn::Norm::Kind::layer : nn::Norm::Kind::rms,
            .bias = parameters.find(name + ".bias"),
            .offset = static_cast<float>(spec.norm_offset)};
  }
  /// Of the queries or keys: over each head, or over all of a row.
  nn::Norm head_norm(const std::string& name) const {
    return {.gain = parameters.find(name + ".weight"),
            .eps = static_cast<float>(spec.norm_eps),
            .offset = static_cast<float>(spec.norm_offset),
            .tp = spec.width_norms ? tp : nullptr};
  }
  nn::Norm rotated_norm(const std::string& name) const {
    return spec.rotated_head_norms ? head_norm(name) : nn::Norm();
  }
  Attention attention(const std::string& layer, int index, int place) const;
  template <class Projections>
  nn::Attention<Projections> attention_over(Projections projections, const std::string& layer,
                                            int index, int place) const;
  nn::PlainProjections plain(const std::string& attention) const;
  nn::LatentProjections latent(const std::string& attention) const;
  nn::Mlp mlp(const std::string& name) const {
    return {linear(name + "gate_proj"), linear(name + "up_proj"), linear(name + "down_proj", tp),
            spec.activation};
  }
  nn::ExpertLora expert_lora(const std::string& name, std::string_view projection) const;
  nn::ExpertLora fused_lora(const std::string& module) const;
  nn::Mixture mixture(const std::string& name, int index) const;
  FeedForward feed_forward(const std::string& layer, int index) const {
    if (spec.has_experts(index)) return {mixture(layer + "mlp.", index)};
    return {mlp(layer + "mlp.")};
  }
  /// Layer `index` of the model, which has this place among the layers of the rank.
  Block block(int index, int place) const;
};

}  // namespace troupe::engine::models
