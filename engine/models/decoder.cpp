#include "engine/models/decoder.h"

#include <algorithm>
#include <cmath>

#include "engine/base/text.h"
#include "engine/models/split.h"
#include "engine/nn/attention.h"
#include "engine/nn/compose.h"
#include "engine/nn/mlp.h"
#include "engine/nn/norm.h"
#include "engine/nn/tp.h"

namespace troupe::engine::models {
namespace {

using Block = nn::Chain<nn::Residual<nn::Chain<nn::Norm, nn::Attention>>, nn::Residual<nn::Chain<nn::Norm, nn::Mlp>>>;
static_assert(nn::Module<Block>);

parallel::Communicator* several(parallel::Communicator* group) { return group != nullptr && group->size() > 1 ? group : nullptr; }

Split split_over(parallel::Communicator* tp, const DecoderSpec& spec) {
  value_or_throw(check_split(spec, tp ? tp->size() : 1));
  return split_of(spec, tp ? tp->rank() : 0, tp ? tp->size() : 1);
}

/// Makes the modules of a decoder, each on its parameters and with its adapter, if it has one.
struct Maker {
  nn::Parameters& parameters;
  const DecoderSpec& spec;
  const Split& split;
  parallel::Communicator* tp;
  const nn::RotaryTable& rotary;
  const bool& adapter_on;

  nn::Lora lora(const std::string& name) const;
  nn::Linear linear(const std::string& name, parallel::Communicator* group = nullptr) const {
    return {&parameters.at(name + ".weight"), parameters.find(name + ".bias"), group, lora(name)};
  }
  Block block(int index) const;
};

nn::Lora Maker::lora(const std::string& name) const {
  if (!spec.lora) return {};
  const auto& targets = spec.lora->targets;
  const auto found = std::ranges::find_if(targets, [&](const auto& target) { return target.module == name; });
  if (found == targets.end()) return {};
  return {&parameters.at(cat(name, lora_a)),
          &parameters.at(cat(name, lora_b)),
          parameters.find(cat(name, lora_magnitude)),
          static_cast<float>(found->scale),
          spec.lora->dropout,
          static_cast<std::uint32_t>(found - targets.begin()),
          &adapter_on};
}

Block Maker::block(int index) const {
  const std::string layer = cat("model.layers.", index, ".");
  const auto eps = static_cast<float>(spec.norm_eps);
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(spec.head_size)));
  nn::Attention attention{linear(layer + "self_attn.q_proj"),
                          linear(layer + "self_attn.k_proj"),
                          linear(layer + "self_attn.v_proj"),
                          linear(layer + "self_attn.o_proj", tp),
                          {static_cast<int>(split.heads.size()), static_cast<int>(split.kv_heads.size()), spec.head_size, scale},
                          &rotary,
                          index,
                          {parameters.find(layer + "self_attn.q_norm.weight"), eps},
                          {parameters.find(layer + "self_attn.k_norm.weight"), eps}};
  nn::Mlp mlp{linear(layer + "mlp.gate_proj"), linear(layer + "mlp.up_proj"), linear(layer + "mlp.down_proj", tp)};
  return {{{{&parameters.at(layer + "input_layernorm.weight"), eps}, attention}},
          {{{&parameters.at(layer + "post_attention_layernorm.weight"), eps}, mlp}}};
}

}  // namespace

struct Decoder::Parts {
  DecoderSpec spec;
  parallel::Communicator* tp;
  Split split;
  nn::Parameters parameters;
  nn::RotaryTable rotary;
  nn::Parameter* embedding;
  std::vector<Block> blocks;
  nn::Norm norm;
  nn::Head head;
  nn::ScoreHead score;
  bool adapter_on = true;

  Parts(ops::Device& device, DecoderSpec wanted, bool with_gradients, parallel::Communicator* group)
      : spec(std::move(wanted)),
        tp(several(group)),
        split(split_over(tp, spec)),
        parameters(device, parameter_list(spec, split), with_gradients),
        rotary(device, spec.inverse_frequencies),
        embedding(&parameters.at("model.embed_tokens.weight")) {
    const Maker maker{parameters, spec, split, tp, rotary, adapter_on};
    for (int i = 0; i < spec.layers; ++i) blocks.push_back(maker.block(i));
    norm = {&parameters.at("model.norm.weight"), static_cast<float>(spec.norm_eps)};
    if (spec.labels > 0)
      score = {&device, &parameters.at("score.weight"), parameters.find("score.bias")};
    else
      head = {&device, spec.tied ? embedding : &parameters.at("lm_head.weight"), tp, maker.lora("lm_head")};
  }
};

Decoder::Decoder(ops::Device& device, DecoderSpec spec, bool with_gradients, parallel::Communicator* tp)
    : parts_(std::make_unique<Parts>(device, std::move(spec), with_gradients, tp)) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;

const DecoderSpec& Decoder::spec() const { return parts_->spec; }
void Decoder::use_adapter(bool on) { parts_->adapter_on = on; }
nn::Parameters& Decoder::parameters() { return parts_->parameters; }
const nn::Parameters& Decoder::parameters() const { return parts_->parameters; }
ops::Device& Decoder::device() const { return parts_->parameters.device(); }
parallel::Communicator* Decoder::tp() const { return parts_->tp; }

const nn::Head& Decoder::head() const {
  check(parts_->spec.labels == 0, "Decoder::head: this model scores and has no language head");
  return parts_->head;
}

const nn::ScoreHead& Decoder::score() const {
  check(parts_->spec.labels > 0, "Decoder::score: this is a language model and has no score head");
  return parts_->score;
}

Tensor Decoder::forward(std::span<const std::int32_t> tokens, const nn::Pass& pass, nn::Saved& saved) {
  check(static_cast<std::int32_t>(tokens.size()) == pass.layout.rows(), "Decoder::forward: tokens and layout disagree");
  if (!pass.layout.positions.empty()) parts_->rotary.reserve(*std::ranges::max_element(pass.layout.positions) + 1);
  Tensor x = pass.device.empty({static_cast<std::int64_t>(tokens.size()), parts_->spec.width});  // [T, D]
  std::vector<std::int32_t> room;
  const nn::Parameter& embedding = *parts_->embedding;
  pass.device.gather_rows(embedding.value, nn::own_rows(embedding, tokens, -1, room), x);  // -1: zeros, until the parts are summed
  nn::sum_over(parts_->tp, pass.device, x, "embeddings");
  for (const auto& block : parts_->blocks) x = block.forward(x, pass, saved);
  return parts_->norm.forward(x, pass, saved);
}

void Decoder::backward(std::span<const std::int32_t> tokens, const Tensor& dhidden, const nn::Pass& pass, nn::Saved& saved) {
  Tensor dx = parts_->norm.backward(dhidden, pass, saved);
  for (auto block = parts_->blocks.rbegin(); block != parts_->blocks.rend(); ++block) dx = block->backward(dx, pass, saved);
  std::vector<std::int32_t> room;
  nn::Parameter& embedding = *parts_->embedding;
  if (embedding.grad) pass.device.scatter_add_rows(dx, nn::own_rows(embedding, tokens, -1, room), embedding.grad);
}

nn::KvCache Decoder::make_cache(std::int32_t pages, int page_size) const {
  nn::KvCache cache;
  cache.page_size = page_size, cache.pages = pages;
  const std::int64_t rows = std::int64_t{pages} * page_size, columns = parts_->split.kv_heads.size() * parts_->spec.head_size;
  for (std::int64_t i = 0; i < parts_->spec.layers; ++i) {
    cache.k.push_back(device().empty({rows, columns}));
    cache.v.push_back(device().empty({rows, columns}));
  }
  return cache;
}

}  // namespace troupe::engine::models
