#include "engine/train/expert_training.h"

#include <algorithm>
#include <cmath>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "engine/parallel/all_reduce.h"

namespace troupe::engine::train {
namespace {

std::string bias_name(std::size_t layer) {
  return cat("model.layers.", layer, ".mlp.gate.e_score_correction_bias");
}

// Entropy of the distribution of these counts, divided by its maximum; 1 without choices.
double entropy_of(const std::vector<std::int64_t>& counts, double sum) {
  double entropy = 0;
  for (const std::int64_t count : counts)
    if (count > 0)
      entropy -= static_cast<double>(count) / sum * std::log(static_cast<double>(count) / sum);
  return sum > 0 && counts.size() > 1 ? entropy / std::log(static_cast<double>(counts.size())) : 1;
}

double sum_of(const std::vector<std::int64_t>& counts) {
  double sum = 0;
  for (const std::int64_t count : counts) sum += static_cast<double>(count);
  return sum;
}

// The numbers of a layer, which ranks add up: counts are exact in f64.
template <class Visit>
void each_number(nn::LayerBalance& layer, const Visit& visit) {
  for (auto* counts : {&layer.sums.routed, &layer.sums.favourites})
    for (std::int64_t& count : *counts) visit(count);
  for (double& share : layer.sums.shares) visit(share);
  visit(layer.sums.squares);
  visit(layer.sums.tokens);
  visit(layer.sums.dropped);
  visit(layer.sequences);
  visit(layer.micro_batches);
}

}  // namespace

std::vector<BalanceTerm> balance_terms(const models::ExpertsSpec& spec,
                                       const ExpertOptions& options) {
  std::vector<BalanceTerm> terms;
  for (std::size_t i = 0; i < options.losses.size(); ++i) {
    BalanceLoss loss = options.losses[i];
    const bool given = i < options.coefficients.size();
    const bool asked = given || (spec.auxiliary_loss && !options.samples);
    if (loss == BalanceLoss::config && !asked) continue;
    if (loss == BalanceLoss::config) loss = BalanceLoss::all_layers;
    const double coefficient = given ? options.coefficients[i] : spec.auxiliary_coefficient;
    if (coefficient > 0) terms.push_back({loss, coefficient});
  }
  return terms;
}

Result<> check_expert_options(const models::DecoderSpec& spec, const ExpertOptions& options,
                              bool exact_weights, bool share_prefixes) {
  const std::size_t given = options.coefficients.size();
  if (given > 0 && given != options.losses.size())
    return fail(Errc::usage,
                cat("train.experts.coefficients has ", given, " numbers, but train.experts.losses ",
                    options.losses.size(), " losses; expected one for each"));
  for (const double coefficient : options.coefficients)
    if (!(coefficient >= 0) || !std::isfinite(coefficient))
      return fail(
          Errc::usage,
          cat("train.experts.coefficients: expected numbers of at least 0, found ", coefficient));
  if (!spec.experts) return {};
  const bool changes = options.bias_rate > 0;
  if (changes && !spec.experts->choice_bias)
    return fail(Errc::usage, cat("train.experts.bias_rate: ", spec.architecture,
                                 " has no choice bias; expected 0"));
  if (changes && spec.lora)
    return fail(Errc::usage,
                "train.experts.bias_rate is not possible with an adapter (lora.rank), which does "
                "not contain the choice biases; expected 0");
  if (changes && !exact_weights)
    return fail(Errc::usage,
                "train.experts.bias_rate needs train.weights: f32: choice biases are not rounded");
  if (share_prefixes && (changes || options.z_loss > 0 || options.capacity > 0 ||
                         !balance_terms(*spec.experts, options).empty()))
    return fail(Errc::usage,
                "train.share_prefixes: true computes a shared token once, but train.experts.* "
                "counts it once for each sequence; set one of them to its default");
  return {};
}

ExpertTraining::ExpertTraining(models::Decoder& model, const ExpertOptions& options,
                               parallel::Communicator* dp)
    : model_(model),
      options_(options),
      dp_(dp),
      terms_(balance_terms(*model.spec().experts, options)) {
  for (std::int64_t layer = 0; layer < model.spec().layers; ++layer)
    if (model.spec().has_experts(layer)) layers_.push_back(static_cast<std::size_t>(layer));
  since_update_.assign(layers_.size(), std::vector<std::int64_t>(experts()));
}

double ExpertTraining::coefficient(BalanceLoss loss) const {
  double sum = 0;
  for (const BalanceTerm& term : terms_)
    if (term.loss == loss) sum += term.coefficient;
  return sum;
}

bool ExpertTraining::needs_sums_first(std::size_t parts) const {
  return needs_sums_of_all() && (parts > 1 || dp_ != nullptr || model_.pp() != nullptr);
}

void ExpertTraining::begin(const data::Experience& batch, std::size_t parts, double scale) {
  nn::RouterBalance& balance = model_.balance();
  for (nn::LayerBalance& layer : balance.layers) {
    layer = {};
    layer.sums.routed.resize(experts());
    layer.sums.favourites.resize(experts());
    layer.sums.shares.resize(experts());
  }
  tokens_ = static_cast<double>(batch.token_count());
  sequences_ = static_cast<double>(batch.sequences());
  micro_batches_ = static_cast<double>(parts);
  if (dp_ != nullptr)
    parallel::all_reduce_sum(*dp_, std::span(&micro_batches_, 1), "the number of micro-batches");
  scale_ = scale;
  const auto per = [&](double sum, double count) { return count > 0 ? scale * sum / count : 0; };
  balance.shares = adds_gradients();
  balance.by_sequence = has(BalanceLoss::sequence);
  balance.by_micro_batch = has(BalanceLoss::micro_batch);
  balance.sequence_factor = per(coefficient(BalanceLoss::sequence), sequences_);
  balance.micro_batch_factor = per(coefficient(BalanceLoss::micro_batch), micro_batches_);
  balance.squares_factor = per(options_.z_loss, tokens_);
  balance.capacity = options_.capacity;
  balance.drop = options_.drop;
}

void ExpertTraining::share(parallel::Communicator& group) {
  auto& layers = model_.balance().layers;
  std::vector<double> numbers;
  for (const std::size_t layer : layers_)
    each_number(layers[layer], [&](auto& x) { numbers.push_back(static_cast<double>(x)); });
  parallel::all_reduce_sum(group, numbers, "the loads of the experts");
  auto next = numbers.begin();
  for (const std::size_t layer : layers_)
    each_number(layers[layer],
                [&](auto& x) { x = static_cast<std::decay_t<decltype(x)>>(*next++); });
}

void ExpertTraining::sums_complete() {
  if (model_.pp() != nullptr) share(*model_.pp());
  if (dp_ != nullptr) share(*dp_);
  for (std::size_t i = 0; i < layers_.size(); ++i)
    for (std::size_t e = 0; e < experts(); ++e)
      since_update_[i][e] += model_.balance().layers[layers_[i]].sums.routed[e];
  set_slopes();
}

// Favourites and shares of all layers together, as of one layer.
ops::RouterSums ExpertTraining::joined() const {
  ops::RouterSums all;
  all.favourites.resize(experts());
  all.shares.resize(experts());
  for (const std::size_t layer : layers_) {
    const ops::RouterSums& one = model_.balance().layers[layer].sums;
    for (std::size_t e = 0; e < experts(); ++e) {
      all.favourites[e] += one.favourites[e];
      all.shares[e] += one.shares[e];
    }
    all.tokens += one.tokens;
  }
  return all;
}

void ExpertTraining::set_slopes() {
  if (!has(BalanceLoss::batch) && !has(BalanceLoss::all_layers)) return;
  // transformers' loss is k times the mean.
  const double times = scale_ * static_cast<double>(router().chosen);
  const ops::RouterSums all = joined();
  for (const std::size_t layer : layers_) {
    nn::LayerBalance& own = model_.balance().layers[layer];
    own.share_gradients.assign(experts(), 0);
    nn::add_balance_gradients(router(), own.sums, scale_ * coefficient(BalanceLoss::batch),
                              own.share_gradients);
    nn::add_balance_gradients(router(), all, times * coefficient(BalanceLoss::all_layers),
                              own.share_gradients);
  }
}

template <class Of>
double ExpertTraining::layer_mean(Of of) const {
  double sum = 0;
  for (const std::size_t layer : layers_) sum += of(model_.balance().layers[layer]);
  return sum / static_cast<double>(layers_.size());
}

void ExpertTraining::report(loss::Report& report) const {
  const auto add = [&](const char* name, double value) { report.mean(name, value, 1); };
  double largest = 0, lowest = 1, dead = 0, dropped = 0;
  for (const std::size_t layer : layers_) {
    const ops::RouterSums& sums = model_.balance().layers[layer].sums;
    const double all = sum_of(sums.routed);
    const auto most = static_cast<double>(*std::ranges::max_element(sums.routed));
    if (all > 0) largest = std::max(largest, most * static_cast<double>(experts()) / all);
    lowest = std::min(lowest, entropy_of(sums.routed, all));
    dead += static_cast<double>(std::ranges::count(sums.routed, 0));
    dropped += static_cast<double>(sums.dropped);
  }
  add("moe/load_max_over_mean", largest);
  add("moe/load_entropy", lowest);
  add("moe/dead_experts", dead);
  add("moe/dropped_tokens", dropped);
  using Layer = nn::LayerBalance;
  if (has(BalanceLoss::all_layers))
    add("moe/all_layers_loss",
        static_cast<double>(router().chosen) * nn::balance_value(router(), joined()));
  if (has(BalanceLoss::batch))
    add("moe/batch_loss",
        layer_mean([&](const Layer& layer) { return nn::balance_value(router(), layer.sums); }));
  if (has(BalanceLoss::micro_batch))
    add("moe/micro_batch_loss",
        layer_mean([&](const Layer& layer) { return layer.micro_batches / micro_batches_; }));
  if (has(BalanceLoss::sequence))
    add("moe/sequence_loss",
        layer_mean([&](const Layer& layer) { return layer.sequences / sequences_; }));
  if (options_.z_loss > 0)
    add("moe/z_loss", layer_mean([&](const Layer& layer) { return layer.sums.squares / tokens_; }));
}

void ExpertTraining::end() {
  nn::RouterBalance& balance = model_.balance();
  balance.sequence_factor = balance.micro_batch_factor = balance.squares_factor = 0;
  balance.capacity = 0;
  for (nn::LayerBalance& layer : balance.layers) layer.share_gradients.clear();
}

void ExpertTraining::update_biases(bool updated) {
  ops::Device& device = model_.device();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto counts = std::exchange(since_update_[i], std::vector<std::int64_t>(experts()));
    nn::Parameter* bias = model_.parameters().find(bias_name(layers_[i]));
    if (!updated || options_.bias_rate == 0 || bias == nullptr) continue;
    const double sum = sum_of(counts);
    std::vector<float> values = ops::to_host(device, bias->value);
    for (std::size_t e = 0; e < values.size(); ++e) {
      const double missing = sum - static_cast<double>(counts[e]) * static_cast<double>(experts());
      const auto rate = static_cast<float>(options_.bias_rate);
      if (missing != 0) values[e] += missing > 0 ? rate : -rate;
    }
    device.upload(bias->value, values);
  }
}

ExpertTraining::Loads ExpertTraining::loads() const {
  Loads out;
  for (const std::size_t layer : layers_) {
    const auto& routed = model_.balance().layers[layer].sums.routed;
    out.layers.push_back(static_cast<std::int64_t>(layer));
    out.counts.insert(out.counts.end(), routed.begin(), routed.end());
  }
  return out;
}

}  // namespace troupe::engine::train
