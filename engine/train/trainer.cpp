#include "engine/train/trainer.h"

#include <algorithm>
#include <exception>
#include <numeric>

#include "engine/base/errors/check.h"
#include "engine/base/log/log.h"
#include "engine/base/random/random.h"
#include "engine/base/text/text.h"
#include "engine/ops/device.h"
#include "engine/ops/phase.h"
#include "engine/parallel/all_reduce.h"
#include "engine/train/micro_batches.h"
#include "engine/train/partition.h"

namespace troupe::engine::train {
namespace {

constexpr std::size_t named = 5;

// In f64 the square of a nonzero f32 value is not zero.
bool has_zero_gradient(const nn::Parameters& parameters, const nn::Parameter& parameter) {
  return parameters.device().sum_of_squares(parameter.grad) == 0;
}

// Gradients of a loss whose gradients do not depend on the outputs.
std::optional<loss::ValueAndGrads> input_independent_grads(const loss::AnyLoss& loss,
                                                           const data::Experience& part,
                                                           const models::DecoderSpec& spec) {
  if (!loss.needs().grad_is_input_independent) return std::nullopt;
  HeadOutputs zeros;
  for (auto* column : zeros.columns(loss.needs(), spec)) column->assign(part.tokens.size(), 0.0f);
  loss::Report unused;
  return loss::value_and_grads(loss, zeros.outputs(), part, unused);
}

// Gradients of some sequences of a batch.
loss::ValueAndGrads select(const loss::ValueAndGrads& grads, const data::Experience& batch,
                           std::span<const std::int32_t> sequences) {
  const auto part = [&](const std::vector<float>& column) {
    return column.empty() ? column : select_column(column, batch, sequences);
  };
  loss::ValueAndGrads out{0, part(grads.dlogp), part(grads.dentropy), {}};
  for (const auto& column : grads.dscores) out.dscores.push_back(part(column));
  return out;
}

// The groups of sequences with a nonzero gradient: only these need a backward pass.
Partition nonzero_grad_groups(const Partition& share, const loss::ValueAndGrads& grads,
                              const data::Experience& batch) {
  Partition out;
  const auto size = static_cast<std::size_t>(batch.sequences_per_group);
  for (std::size_t first = 0; first < share.size(); first += size) {
    const auto group = std::span(share).subspan(first, size);
    if (!is_zero(select(grads, batch, group))) out.insert(out.end(), group.begin(), group.end());
  }
  return out;
}

// Sums the results of the replicas, in the order of the ranks.
BatchLoss all_reduce_loss(parallel::Communicator& dp, const BatchLoss& mine) {
  double numbers[] = {mine.loss, static_cast<double>(mine.tokens)};
  parallel::all_reduce_sum(dp, numbers, "the loss of a batch");
  BatchLoss all{numbers[0], static_cast<std::int64_t>(numbers[1]), {}};
  for (const auto& text :
       parallel::gather_strings(dp, mine.report.to_json().dump(), "the report of a batch")) {
    const auto json = value_or_throw(parse_json(text, "the report of a batch"));
    all.report.merge(value_or_throw(loss::Report::from_json(json)));
  }
  return all;
}

// The result of the last stage, which alone has the outputs.
void share_loss(parallel::Communicator& pp, BatchLoss& loss) {
  pp.broadcast(std::as_writable_bytes(std::span(&loss.loss, 1)), pp.size() - 1,
               "the loss of the last stage");
  const auto reports =
      parallel::gather_strings(pp, pp.rank() == pp.size() - 1 ? loss.report.to_json().dump() : "",
                               "the report of the last stage");
  const auto json = value_or_throw(parse_json(reports.back(), "the report of the last stage"));
  loss.report = value_or_throw(loss::Report::from_json(json));
}

// The ranks with the same part of the model; nullptr: no other rank has it.
parallel::Communicator* replicas_of(const parallel::Mesh* mesh) {
  return mesh && mesh->replicas().size() > 1 ? &mesh->replicas() : nullptr;
}

// How the replicas divide the optimizer state; nullptr: they do not.
std::shared_ptr<const nn::ArenaShards> shards_of(models::Decoder& model,
                                                 parallel::Communicator* replicas,
                                                 std::int64_t bucket) {
  if (replicas == nullptr) return nullptr;
  return std::make_shared<const nn::ArenaShards>(model.parameters().trained(), *replicas,
                                                 model.tp() != nullptr || model.pp() != nullptr,
                                                 bucket);
}

// Of the trained tensors of this stage in the whole model.
std::vector<std::uint32_t> numbers_of(const models::Decoder& model) {
  const nn::Parameters& whole = model.whole().trained();
  std::vector<std::uint32_t> numbers;
  for (const auto& parameter : model.parameters().trained().all())
    numbers.push_back(static_cast<std::uint32_t>(whole.find(parameter.name) - whole.all().data()));
  return numbers;
}

}  // namespace

std::vector<std::string> zero_gradient_names(const nn::Parameters& parameters,
                                             const nn::ArenaShards* shards) {
  std::vector<std::string> names;
  if (shards != nullptr) {
    const auto nonzero = nn::nonzero_gradients(parameters.trained(), *shards);
    for (std::size_t i = 0; i < nonzero.size(); ++i)
      if (!nonzero[i]) names.push_back(parameters.trained().all()[i].name);
    return names;
  }
  for (const auto& parameter : parameters.trained().all())
    if (has_zero_gradient(parameters, parameter)) names.push_back(parameter.name);
  return names;
}

std::string zero_gradient_warning(const nn::Parameters& parameters, std::int64_t step,
                                  const nn::ArenaShards* shards) {
  if (step != 1 && step != 10) return "";
  auto names = zero_gradient_names(parameters, shards);
  if (names.size() == parameters.trained().all().size()) return "";  // no tensor has a gradient
  // Only updates of the routers' balance change them.
  std::erase_if(names, [](const std::string& name) { return name.ends_with("_correction_bias"); });
  if (step == 1)
    std::erase_if(names, [&](const std::string& name) {
      const auto* parameter = parameters.find(name);
      return parameter != nullptr && parameter->adapter;
    });
  if (names.empty()) return "";
  const std::size_t count = names.size();
  if (count > named) names.resize(named);
  return cat("step ", step, ": ", count, count == 1 ? " tensor has" : " tensors have",
             " a gradient of exactly 0 and ", count == 1 ? "does" : "do",
             " not learn: ", join(names, ", "), count > named ? ", ..." : "");
}

Trainer::Trainer(std::unique_ptr<models::Decoder> model, TrainerOptions options,
                 const parallel::Mesh* mesh)
    : model_(std::move(model)),
      options_(std::move(options)),
      dp_(mesh && mesh->grid().dp > 1 ? &mesh->dp() : nullptr),
      optimizer_(model_->parameters(), model_->tp(),
                 shards_of(*model_, options_.shard_optimizer ? replicas_of(mesh) : nullptr,
                           options_.bucket_values),
                 model_->pp(), nn::stored(options_.moments)),
      exchange_(*model_, replicas_of(mesh), optimizer_.shards(), options_.overlap,
                options_.bucket_values) {
  check(model_->tp() == (mesh && mesh->grid().tp > 1 ? &mesh->tp() : nullptr) &&
            model_->pp() == (mesh && mesh->grid().pp > 1 ? &mesh->pp() : nullptr) &&
            model_->cp() == (mesh && mesh->grid().cp > 1 ? &mesh->cp() : nullptr),
        "Trainer: the model belongs to another mesh");
  if (model_->spec().experts) {
    value_or_throw(check_expert_options(model_->spec(), options_.experts,
                                        options_.optimizer.weights == nn::WeightType::f32,
                                        options_.share_prefixes));
    experts_.emplace(*model_, options_.experts, dp_);
  }
  if (model_->pp() != nullptr) optimizer_.set_numbers(numbers_of(*model_));
  if (options_.dtype == ops::Precision::f16) loss_scale_.emplace(options_.loss_scale);
  if (options_.optimizer.ema_decay > 0) optimizer_.keep_average();
  if (!options_.offload.empty()) offload_ = std::make_unique<nn::Offload>(options_.offload);
}

Trainer::~Trainer() {
  try {
    exchange_.finish_weights();
  } catch (const std::exception& error) {
    log_warning(error.what());
  }
}

PassOptions Trainer::passes(bool counts) const {
  return {.precision = options_.dtype,
          .recomputed = options_.recomputed,
          .share_prefixes = options_.share_prefixes,
          .dropout = dropout(),
          .offload = offload_.get(),
          .hooks = exchange_.hooks(false),
          .last_hooks = exchange_.hooks(true),
          .every_row = experts_.has_value(),
          .every_gradient = experts_ && experts_->adds_gradients(),
          .counts_routes = counts && experts_};
}

void Trainer::begin_loads(const data::Experience& batch) {
  const auto parts = [&](const data::Experience& own) {
    return data::micro_batches(own, options_.micro_batch_tokens).size() - 1;
  };
  const auto own = [&] {
    const auto partitions = partition_by_tokens(batch, dp_->size());
    return batch.select(partitions[static_cast<std::size_t>(dp_->rank())]);
  };
  experts_->begin(batch, dp_ == nullptr ? parts(batch) : parts(own()),
                  loss_scale_ ? loss_scale_->value() : 1);
}

void Trainer::complete_loads_of(const std::vector<data::Experience>& parts) {
  PassOptions forward = passes(true);
  forward.backward = false;
  forward.hooks = forward.last_hooks = nullptr;
  const loss::Needs nothing{.logp = false};
  exchange_.finish_weights();
  run_micro_batches(
      *model_,
      {parts, nothing, {}, [](std::size_t, const HeadOutputs&) { return loss::ValueAndGrads(); }},
      forward);
  experts_->sums_complete();
}

BatchLoss Trainer::one_pass(const data::Experience& batch, const loss::AnyLoss& loss) {
  BatchLoss out;
  out.tokens = batch.token_count();
  HeadOutputs all;
  auto parts = split_into_parts(batch, options_.micro_batch_tokens);
  const bool split = parts.size() > 1,
             at_first = experts_ && experts_->needs_sums_first(parts.size()),
             at_once = experts_ && !at_first && experts_->needs_sums_of_all();
  if (at_first) complete_loads_of(parts);
  MicroBatches run{std::move(parts), loss.needs(), {}, {}};
  run.known = [&](std::size_t i) {
    auto grads = input_independent_grads(loss, run.parts[i], model_->spec());
    return grads ? std::optional(scaled(std::move(*grads))) : std::nullopt;
  };
  run.loss = [&](std::size_t i, HeadOutputs outputs) {
    loss::Report of_part;
    auto grads = loss::value_and_grads(loss, outputs.outputs(), run.parts[i], of_part);
    if (split) {
      all.append(std::move(outputs), loss.needs(), model_->spec());
    } else {
      out.loss = grads.loss;
      out.report = of_part;
    }
    if (at_once) experts_->sums_complete();
    return scaled(std::move(grads));
  };
  run_micro_batches(*model_, run, passes(!at_first));
  if (experts_ && !at_first && !at_once) experts_->sums_complete();
  exchange_.passes_ended();
  // Sums over the tokens of the batch in their order, wherever it was split.
  if (split && model_->stage().last())
    out.loss = loss::value(loss, all.outputs(), batch, out.report);
  if (model_->pp() != nullptr) share_loss(*model_->pp(), out);
  return out;
}

BatchLoss Trainer::two_passes(const data::Experience& batch, const loss::AnyLoss& loss) {
  BatchLoss out;
  exchange_.finish_weights();
  ScoringOptions first_pass = scoring(loss.needs().temperature);
  first_pass.dropout = dropout();
  first_pass.counts_routes = experts_.has_value();
  const HeadOutputs outputs = head_outputs(*model_, batch, loss.needs(), first_pass, dp_);
  if (experts_) experts_->sums_complete();
  const loss::ValueAndGrads grads =
      scaled(loss::value_and_grads(loss, outputs.outputs(), batch, out.report));
  out.loss = grads.loss;
  out.tokens = batch.token_count();
  const auto share = partition_by_tokens(
      batch, dp_ ? dp_->size() : 1)[static_cast<std::size_t>(dp_ ? dp_->rank() : 0)];
  const Partition mine =
      experts_ && experts_->adds_gradients() ? share : nonzero_grad_groups(share, grads, batch);
  const data::Experience own = batch.select(mine);
  const auto bounds = data::micro_batches(own, options_.micro_batch_tokens);
  const auto given = [&](std::size_t i) {
    const auto begin = static_cast<std::size_t>(bounds[i]),
               end = static_cast<std::size_t>(bounds[i + 1]);
    return select(grads, batch, std::span(mine).subspan(begin, end - begin));
  };
  run_micro_batches(*model_,
                    {split_into_parts(own, options_.micro_batch_tokens), loss.needs(), given,
                     [&](std::size_t i, const HeadOutputs&) { return given(i); }},
                    passes(false));
  exchange_.passes_ended();
  return out;
}

BatchLoss Trainer::forward_backward(const data::Experience& batch, const loss::AnyLoss& loss) {
  batch.validate(model_->spec().vocabulary);
  const auto pass = [&](const data::Experience& given) {
    return ops::in_phase(model_->device(), "forward_backward",
                         [&] { return run_batch(given, loss); });
  };
  if (!dropout()) return pass(batch);
  data::Experience numbered = batch;
  numbered.number.resize(static_cast<std::size_t>(batch.sequences()));
  std::iota(numbered.number.begin(), numbered.number.end(), std::uint64_t{0});
  auto found = pass(numbered);
  ++passes_;
  return found;
}

BatchLoss Trainer::run_batch(const data::Experience& batch, const loss::AnyLoss& loss) {
  if (!experts_) return run_passes(batch, loss);
  begin_loads(batch);
  BatchLoss out = run_passes(batch, loss);
  experts_->report(out.report);
  out.experts = experts_->loads();
  experts_->end();
  return out;
}

BatchLoss Trainer::run_passes(const data::Experience& batch, const loss::AnyLoss& loss) {
  value_or_throw(check_needs(model_->spec(), loss.needs()));
  const bool at_once =
      dp_ == nullptr && data::micro_batches(batch, options_.micro_batch_tokens).size() <= 2;
  if (loss.needs().whole_batch && !at_once && batch.sequences() > 0) return two_passes(batch, loss);
  if (dp_ == nullptr) return one_pass(batch, loss);
  const auto partitions = partition_by_tokens(batch, dp_->size());
  return all_reduce_loss(
      *dp_, one_pass(batch.select(partitions[static_cast<std::size_t>(dp_->rank())]), loss));
}

Result<optim::AdamW::Report> Trainer::update(double learning_rate) {
  ops::Device& device = model_->device();
  ops::in_phase(device, "sum_gradients", [&] { exchange_.sum_gradients(); });
  if (const auto warning =
          zero_gradient_warning(model_->parameters(), optimizer_.steps() + 1, optimizer_.shards());
      !warning.empty())
    log_warning(warning);
  optim::AdamWConfig how = options_.optimizer;
  if (loss_scale_) how.loss_scale = loss_scale_->value();
  auto result = ops::in_phase(device, "optimizer", [&] {
    return optimizer_.step(learning_rate, how, optim::AdamW::Gradients::cleared,
                           exchange_.gather());
  });
  if (loss_scale_ && result) loss_scale_->update(result->skipped);
  if (experts_ && result) {
    exchange_.finish_weights();
    experts_->update_biases(!result->skipped);
  }
  passes_ = 0;
  return result;
}

loss::ValueAndGrads Trainer::scaled(loss::ValueAndGrads grads) const {
  if (!loss_scale_) return grads;
  const auto factor = static_cast<float>(loss_scale_->value());
  const auto scale = [&](std::vector<float>& column) {
    for (float& each : column) each *= factor;
  };
  scale(grads.dlogp);
  scale(grads.dentropy);
  std::ranges::for_each(grads.dscores, scale);
  return grads;
}

ScoringOptions Trainer::scoring(double temperature) const {
  return {.precision = options_.dtype,
          .micro_batch_tokens = options_.micro_batch_tokens,
          .temperature = temperature};
}

// Every pass of every update has its own keys.
std::optional<PassDropout> Trainer::dropout() const {
  const auto& lora = model_->spec().lora;
  const double hidden = options_.hidden_dropout, attention = options_.attention_dropout;
  if ((!lora || lora->dropout == 0) && hidden == 0 && attention == 0) return std::nullopt;
  const auto key = [this](std::uint64_t seed) {
    return uniform_below(~std::uint64_t{0}, seed, version(), passes_);
  };
  const auto key_of = [&](std::string_view what) {
    return key(uniform_below(~std::uint64_t{0}, options_.optimizer.seed, stream_of(what), 0));
  };
  return PassDropout{key(options_.adapter_seed), hidden, attention, key_of("hidden dropout"),
                     key_of("attention dropout")};
}

std::vector<float> Trainer::logprobs(const data::Experience& batch, double temperature, bool base) {
  if (base) {
    check(model_->spec().lora.has_value(),
          "Trainer::logprobs: only a model with an adapter has a base");
    const models::AdapterDisabled alone(*model_);
    return logprobs(batch, temperature);
  }
  return train::logprobs(model(), batch, scoring(temperature), dp_);
}

std::vector<float> Trainer::scores(const data::Experience& batch, loss::ReadAt at,
                                   const std::vector<std::int32_t>& candidates) {
  return train::scores(model(), batch, at, candidates, scoring(1), dp_);
}

TrainerState Trainer::state() const {
  TrainerState out{.updates = optimizer_.steps(), .loss_scale = {}};
  if (loss_scale_) out.loss_scale = loss_scale_->state();
  return out;
}

void Trainer::load_state(const TrainerState& state, const Tensor& average) {
  optimizer_.set_steps(state.updates);
  if (loss_scale_ && state.loss_scale) loss_scale_->restore(*state.loss_scale);
  if (!optimizer_.average()) return;
  if (average) return optimizer_.restore_average(average);
  optimizer_.keep_average();
}

}  // namespace troupe::engine::train
