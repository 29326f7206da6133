#include "engine/models/decoder.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "engine/models/module_builder.h"
#include "engine/nn/embedding.h"
#include "engine/nn/layers.h"
#include "engine/nn/sequence_parallel.h"
#include "engine/nn/shared_rows.h"

namespace troupe::engine::models {
namespace {

parallel::Communicator* unless_single(parallel::Communicator* group) {
  return group != nullptr && group->size() > 1 ? group : nullptr;
}

std::unique_ptr<collectives::TensorGroup> tensors_of(ops::Device& device,
                                                     parallel::Communicator* group) {
  return group != nullptr ? collectives::make_tensor_group(device, *group) : nullptr;
}

Split split_over(parallel::Communicator* tp, bool divides_rows, const DecoderSpec& spec) {
  value_or_throw(check_split(spec, tp ? tp->size() : 1));
  Split split = split_of(spec, tp ? tp->rank() : 0, tp ? tp->size() : 1);
  split.divides_rows = divides_rows && tp != nullptr;
  if (split.divides_rows && spec.experts)
    throw Failure(Error{Errc::usage, cat("parallel.sp is not possible for a mixture of experts (",
                                         spec.architecture, "); parallel.tp alone is")});
  if (tp != nullptr && spec.lora)
    for (const LoraTarget& target : spec.lora->targets)
      if (target.module.find(".mlp.experts.") != target.module.npos)
        throw Failure(
            Error{Errc::usage,
                  cat("parallel.tp is not possible with an adapter of experts (", target.module,
                      "); more ranks can be replicas "
                      "(parallel.dp) or stages (parallel.pp)")});
  if (split.divides_rows && spec.lora && spec.lora->dora)
    throw Failure(Error{Errc::usage, "parallel.sp is not possible with magnitudes (lora.dora)"});
  return split;
}

ModelPart without_single_groups(ModelPart part) {
  part.tp = unless_single(part.tp);
  part.pp = unless_single(part.pp);
  part.cp = unless_single(part.cp);
  return part;
}

// The layers of this rank.
PipelineStage stage_in(const ModelPart& part, const DecoderSpec& spec) {
  value_or_throw(check_mixture(spec, "context", part.cp ? part.cp->size() : 1));
  const auto* pp = part.pp;
  const auto layers = value_or_throw(stage_layers(spec, pp ? pp->size() : 1, part.layers,
                                                  pp ? part.noop : std::vector<std::int64_t>(),
                                                  pp ? part.chunks : 1));
  return stage_of(pp ? pp->rank() : 0, layers, pp ? part.chunks : 1);
}

}  // namespace

struct Decoder::Impl {
  DecoderSpec spec;
  ModelPart part;
  parallel::Communicator *tp, *pp, *cp;
  std::unique_ptr<collectives::TensorGroup> tp_tensors, pp_tensors;
  std::unique_ptr<collectives::TensorGroup> own_gradients;  ///< with several chunks
  std::optional<nn::ContextGroups> context;
  Split split;
  PipelineStage stage;
  nn::Parameters parameters;
  std::unique_ptr<nn::Parameters> whole;  ///< with several stages
  std::vector<nn::RotaryTable> rotary;
  nn::Embedding embedding;
  std::vector<Block> blocks;
  nn::Norm norm;
  nn::Head head;
  nn::ScoreHead score;
  bool adapter_on = true;
  nn::RouterBalance balance;

  Impl(ops::Device& device, DecoderSpec wanted, bool with_gradients, const ModelPart& given)
      : spec(std::move(wanted)),
        part(without_single_groups(given)),
        tp(part.tp),
        pp(part.pp),
        cp(part.cp),
        tp_tensors(tensors_of(device, tp)),
        pp_tensors(tensors_of(device, pp)),
        split(split_over(tp, part.divides_rows, spec)),
        stage(stage_in(part, spec)),
        parameters(device, parameter_list(spec, split, stage), with_gradients, part.types) {
    if (cp != nullptr) context = nn::context_groups(*cp, device, part.ulysses, part.inner_ring);
    if (stage.chunks.size() > 1)
      own_gradients = collectives::make_tensor_group(device, pp->split(0, pp->rank()));
    if (pp != nullptr)
      whole =
          std::make_unique<nn::Parameters>(nn::Parameters::described(device, parameter_list(spec)));
    for (const auto& table : spec.rotary) rotary.emplace_back(device, table);
    const ModuleBuilder build{.parameters = parameters,
                              .spec = spec,
                              .split = split,
                              .tp = tp_tensors.get(),
                              .rotary = rotary,
                              .adapter_on = adapter_on,
                              .balance = balance};
    balance.layers.resize(static_cast<std::size_t>(spec.layers));
    nn::Parameter* table = parameters.find("model.embed_tokens.weight");
    if (stage.first())
      embedding = {table, tp_tensors.get(), static_cast<float>(spec.embedding_multiplier),
                   parameters.find("model.embed_positions.weight"), build.norm("model.embed_norm")};
    for (const std::int64_t layer : stage.layers())
      blocks.push_back(build.block(static_cast<int>(layer), static_cast<int>(blocks.size())));
    if (stage.last()) add_head(device, build, table);
  }

  void add_head(ops::Device& device, const ModuleBuilder& build, nn::Parameter* table) {
    norm = build.norm("model.norm");
    // Stages that each have a copy of the table have one part of its gradient each.
    if (stage.first() && spec.tied && spec.labels == 0 && table->grad)
      table->state->lookup = std::make_unique<nn::LookupGradient>(device, table->grad.shape());
    if (spec.labels > 0)
      score = {&device, &parameters.at("score.weight"), parameters.find("score.bias")};
    else
      head = {.device = &device,
              .weight = spec.tied ? table : &parameters.at("lm_head.weight"),
              .tp = tp_tensors.get(),
              .lora = build.lora("lm_head"),
              .logit_scale = static_cast<float>(spec.logit_scale),
              .softcap = static_cast<float>(spec.logit_softcap),
              .normalized = spec.normalized_head,
              .bias = parameters.find("lm_head.bias")};
    if ((head.normalized || head.bias) && head.lora)
      throw Failure(Error{Errc::usage,
                          cat("an adapter of lm_head is not possible for a model whose output ",
                              head.bias ? "layer has a bias" : "matrix is normalized (NormHead)")});
  }

  nn::Layers<Block> layers(std::size_t chunk) const {
    const parallel::Range places = stage.places(chunk);
    const auto first = static_cast<std::size_t>(places.begin);
    return nn::Layers<Block>(
        std::span(blocks).subspan(first, static_cast<std::size_t>(places.size())), first);
  }

  /// Extends the position tables to the positions of a pass.
  void reserve(const nn::ForwardContext& pass) {
    const auto& positions = pass.layout.positions;
    if (positions.empty()) return;
    const std::int64_t last = *std::ranges::max_element(positions);
    if (spec.learned_positions > 0 && last >= spec.learned_positions)
      throw Failure(Error{Errc::bad_input,
                          cat("a sequence has ", last + 1, " tokens, but the model has only ",
                              spec.learned_positions, " learned positions; shorten it")});
    for (auto& table : rotary) table.reserve(pass);
  }
};

Decoder::Decoder(ops::Device& device, DecoderSpec spec, bool with_gradients, const ModelPart& part)
    : impl_(std::make_unique<Impl>(device, std::move(spec), with_gradients, part)) {
}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;

const DecoderSpec& Decoder::spec() const {
  return impl_->spec;
}
void Decoder::set_adapter_enabled(bool on) {
  impl_->adapter_on = on;
}
nn::Parameters& Decoder::parameters() {
  return impl_->parameters;
}
const nn::Parameters& Decoder::parameters() const {
  return impl_->parameters;
}
nn::RouterBalance& Decoder::balance() {
  return impl_->balance;
}
ops::Device& Decoder::device() const {
  return impl_->parameters.device();
}
parallel::Communicator* Decoder::tp() const {
  return impl_->tp;
}
collectives::TensorGroup* Decoder::rows_group() const {
  return impl_->split.divides_rows ? impl_->tp_tensors.get() : nullptr;
}
parallel::Communicator* Decoder::pp() const {
  return impl_->pp;
}
parallel::Communicator* Decoder::cp() const {
  return impl_->cp;
}
const nn::ContextGroups* Decoder::context() const {
  return impl_->context ? &*impl_->context : nullptr;
}
collectives::TensorGroup* Decoder::pp_gradients() const {
  return (impl_->own_gradients ? impl_->own_gradients : impl_->pp_tensors).get();
}
collectives::TensorGroup* Decoder::tp_tensors() const {
  return impl_->tp_tensors.get();
}
collectives::TensorGroup* Decoder::pp_tensors() const {
  return impl_->pp_tensors.get();
}
const PipelineStage& Decoder::stage() const {
  return impl_->stage;
}
const ModelPart& Decoder::part() const {
  return impl_->part;
}
const nn::Parameters& Decoder::whole() const {
  return impl_->whole ? *impl_->whole : impl_->parameters;
}

const nn::Head& Decoder::head() const {
  check(impl_->spec.labels == 0, "Decoder::head: the model has a score head, not a language head");
  return impl_->head;
}

std::vector<nn::Parameter*> Decoder::weights() {
  std::vector<nn::Parameter*> out;
  for (auto& parameter : parameters().all()) {
    const bool multiplies =
        parameter.name.starts_with("model.layers.") || &parameter == impl_->head.weight;
    // Routers multiply in f32 (nn/mixture.h).
    const bool routes = impl_->spec.experts && (parameter.name.ends_with(".mlp.gate.weight") ||
                                                parameter.name.ends_with("_expert_gate.weight"));
    if (multiplies && !routes && parameter.value.shape().rank() == 2 && !parameter.adapter)
      out.push_back(&parameter);
  }
  return out;
}

const nn::ScoreHead& Decoder::score() const {
  check(impl_->spec.labels > 0, "Decoder::score: the model has a language head, not a score head");
  return impl_->score;
}

Tensor Decoder::forward(std::span<const std::int32_t> tokens, const nn::ForwardContext& pass,
                        nn::Saved& saved) {
  check(impl_->pp == nullptr, "Decoder::forward: the model has stages");
  return forward_stage(tokens, {}, pass, saved);
}

void Decoder::backward(std::span<const std::int32_t> tokens, const Tensor& dhidden,
                       const nn::ForwardContext& pass, nn::Saved& saved) {
  check(impl_->pp == nullptr, "Decoder::backward: the model has stages");
  backward_stage(tokens, dhidden, pass, saved);
}

Tensor Decoder::forward_stage(std::span<const std::int32_t> tokens, const Tensor& input,
                              const nn::ForwardContext& pass, nn::Saved& saved, std::size_t chunk) {
  check(static_cast<std::int32_t>(tokens.size()) == pass.layout.rows(),
        "Decoder::forward: tokens and layout disagree");
  check(static_cast<bool>(input) != impl_->stage.begins(chunk),
        "Decoder::forward_stage: every chunk but the first has an input");
  impl_->reserve(pass);
  const auto before = [&pass](std::size_t block) {
    if (pass.hooks && pass.hooks->before_forward) pass.hooks->before_forward(block);
  };
  const parallel::Range places = impl_->stage.places(chunk);
  Tensor x = input;  // [U, D]
  before(static_cast<std::size_t>(places.begin));
  if (impl_->stage.begins(chunk))
    x = pass.context != nullptr
            ? impl_->embedding.forward(nn::own_values(*pass.context, tokens), pass, saved)
            : nn::unique_rows(pass, impl_->embedding.forward(tokens, pass, saved));
  x = impl_->layers(chunk).forward(x, pass, saved);
  if (places.end == std::ssize(impl_->blocks)) before(impl_->blocks.size());
  if (!impl_->stage.ends(chunk)) return x;
  x = nn::gather_rows(pass, impl_->norm.forward(x, pass, saved), "the rows of the last layer");
  return pass.context != nullptr ? x : nn::expand_rows(pass, x);
}

void Decoder::recompute_in_advance(const nn::ForwardContext& pass, nn::Saved& saved,
                                   std::size_t chunk) {
  impl_->reserve(pass);
  impl_->layers(chunk).recompute_in_advance(pass, saved);
}

Tensor Decoder::backward_stage(std::span<const std::int32_t> tokens, const Tensor& dresult,
                               const nn::ForwardContext& pass, nn::Saved& saved,
                               std::size_t chunk) {
  impl_->reserve(pass);  // another forward pass may have replaced the tables
  Tensor dx = dresult;
  if (impl_->stage.ends(chunk))
    dx = impl_->norm.backward(
        nn::own_rows(pass, pass.context != nullptr ? dx : nn::expand_rows_backward(pass, dx)), pass,
        saved);
  dx = impl_->layers(chunk).backward(dx, pass, saved);
  if (!impl_->stage.begins(chunk)) return dx;
  if (pass.context != nullptr)
    impl_->embedding.backward(nn::own_values(*pass.context, tokens), dx, pass, saved);
  else
    impl_->embedding.backward(tokens, nn::unique_rows_backward(pass, dx), pass, saved);
  return {};
}

nn::KvCache Decoder::make_cache(std::int32_t pages, int page_size) const {
  nn::KvCache cache;
  cache.page_size = page_size;
  cache.pages = pages;
  const std::int64_t rows = std::int64_t{pages} * page_size,
                     columns = impl_->split.kv_heads.size() * impl_->spec.head_size;
  for (std::size_t i = 0; i < impl_->blocks.size(); ++i) {
    cache.k.push_back(device().empty({rows, columns}));
    cache.v.push_back(device().empty({rows, columns}));
  }
  return cache;
}

}  // namespace troupe::engine::models
