#include "engine/nn/head.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/nn/lora_rows.h"
#include "engine/nn/parameters.h"
#include "engine/nn/tensor_parallel.h"
#include "engine/parallel/all_reduce.h"

namespace troupe::engine::nn {

namespace {

/// W' with W'[v] = W[v] / |W[v]|, for a weight W [V, D]. A row of zeros stays zero.
class NormalizedRows {
 public:
  NormalizedRows(ops::Device& device, const Parameter& weight);
  /// W' [V, D].
  const Tensor& rows() const { return rows_; }
  /// Adds the gradient of the weight that the gradient `drows` [V, D] of W' implies:
  /// (dW' - W' (W' . dW')) / |W|, row by row.
  void backward(const Tensor& drows) const;

 private:
  ops::Device& device_;
  const Parameter& weight_;
  Tensor gain_, rows_, inverse_;
};

// x / |x| is the RMSNorm of x with the gain 1 / sqrt(D), given here as the offset of a gain of
// zeros.
float offset_of(const Tensor& weight) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(weight.shape()[1])));
}

NormalizedRows::NormalizedRows(ops::Device& device, const Parameter& weight)
    : device_(device),
      weight_(weight),
      gain_(device.empty({weight.value.shape()[1]})),
      rows_(device.empty(weight.value.shape())),
      inverse_(device.empty({weight.value.shape()[0]})) {
  constexpr float no_division_by_zero = 1e-28F;  // torch adds nothing to a norm above 1e-12
  device.fill(gain_, 0);
  device.rms_norm(weight.f32(device), gain_, no_division_by_zero, rows_, inverse_,
                  offset_of(weight.value));
}

void NormalizedRows::backward(const Tensor& drows) const {
  Tensor dweight = device_.empty(drows.shape()), dgain = device_.empty(gain_.shape());
  device_.fill(dgain, 0);  // not used: the gain is a constant
  device_.rms_norm_backward(weight_.f32(device_), gain_, inverse_, drows, dweight, dgain,
                            offset_of(weight_.value));
  weight_.zero_if_unset(device_);
  GradientSum sum(device_, weight_.grad);
  device_.add(sum.f32(), dweight, sum.f32());
  sum.finish();
}

// Scores of a row over one rank's part of the vocabulary.
struct VocabularyShard {
  float logp = 0, lse = 0, entropy = 0;
  std::int32_t owns = 0;  // 1: the target lies in this part, and logp is valid
};

// Softmax over the whole vocabulary from the softmax over each part: with P_r = exp(lse_r - lse),
// the mass of part r, log p(target) = log p_r(target) + log P_r and H = sum_r P_r (H_r - log P_r).
// Computed in f64, in the order of the ranks, and rounded once.
VocabularyShard merge_shards(std::span<const VocabularyShard> all, std::size_t row,
                             std::size_t rows) {
  double highest = static_cast<double>(all[row].lse), sum = 0, logp = 0, entropy = 0;
  for (std::size_t at = row; at < all.size(); at += rows)
    highest = std::max(highest, static_cast<double>(all[at].lse));
  for (std::size_t at = row; at < all.size(); at += rows)
    sum += std::exp(static_cast<double>(all[at].lse) - highest);
  const double lse = highest + std::log(sum);
  for (std::size_t at = row; at < all.size(); at += rows) {
    const double log_mass = static_cast<double>(all[at].lse) - lse;
    if (std::isinf(log_mass)) continue;  // a mask keeps none of the part's tokens
    if (all[at].owns) logp = static_cast<double>(all[at].logp) + log_mass;
    entropy += std::exp(log_mass) * (static_cast<double>(all[at].entropy) - log_mass);
  }
  return {static_cast<float>(logp), static_cast<float>(lse), static_cast<float>(entropy), 1};
}

/// The matrix of the logits during a pass with gradients, and where its gradient goes: to the
/// weight, or through the normalization.
struct MatrixInTraining {
  std::optional<NormalizedRows> normal = {};
  Tensor rows;
  bool accumulates;
  GradientSum gradient;
  std::optional<GradientSum> bias = {};

  explicit MatrixInTraining(const Head& head)
      : accumulates(!head.normalized && head.weight->next_gemm_accumulates()),
        gradient(*head.device, head.normalized ? Tensor() : head.weight->grad, accumulates) {
    if (head.normalized) {
      normal.emplace(*head.device, *head.weight);
      if (head.weight->grad) gradient.f32() = head.device->empty(head.weight->grad.shape());
    }
    rows = normal ? normal->rows() : head.weight->f32(*head.device);
    if (head.bias && head.bias->grad) bias.emplace(*head.device, head.bias->grad);
  }
  Tensor dbias() { return bias ? bias->f32() : Tensor(); }
  void finish() {
    gradient.finish();
    if (bias) bias->finish();
    if (normal && gradient.f32()) normal->backward(gradient.f32());
  }
};

/// Targets as ids and columns of this rank's part of the vocabulary.
class TargetsOfPart {
 public:
  TargetsOfPart(const Parameter& weight, const HeadTargets& targets)
      : ids_(local_rows(weight, targets.ids, ops::target_elsewhere, storage_)) {
    if (targets.masks == nullptr || targets.masks->all_whole()) return;
    check(targets.masks->size() == ids_.size(), "head: one sampling mask a row");
    columns_ = local_columns(weight, *targets.masks);
  }
  std::span<const std::int32_t> ids() const { return ids_; }
  const ops::ColumnMask* columns() const { return columns_ ? &*columns_ : nullptr; }

 private:
  std::vector<std::int32_t> storage_;
  std::span<const std::int32_t> ids_;
  std::optional<ops::ColumnMask> columns_;
};

}  // namespace

Tensor Head::matrix() const {
  return normalized ? NormalizedRows(*device, *weight).rows() : weight->f32(*device);
}

namespace {

/// Replaces the numbers of each rank's part of the vocabulary by those of the whole; logp and
/// entropy may be absent.
void merge_parts(const Head& head, std::span<const std::int32_t> own, Tensor& logp, Tensor& lse,
                 Tensor& entropy) {
  ops::Device& device = *head.device;
  const auto values = [&](const Tensor& x) {
    return x ? ops::to_host(device, x) : std::vector<float>(own.size(), 0.0f);
  };
  auto logps = values(logp), lses = values(lse), entropies = values(entropy);
  std::vector<VocabularyShard> mine, all(own.size() * static_cast<std::size_t>(head.tp->size()));
  for (std::size_t i = 0; i < own.size(); ++i)
    mine.push_back({logps[i], lses[i], entropies[i], own[i] >= 0 ? 1 : 0});
  head.tp->ranks().all_gather(std::as_bytes(std::span(mine)),
                              std::as_writable_bytes(std::span(all)), "log-probabilities");
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i] == ops::no_target) continue;
    const VocabularyShard whole = merge_shards(all, i, own.size());
    logps[i] = whole.logp;
    lses[i] = whole.lse;
    entropies[i] = whole.entropy;
  }
  if (logp) device.upload(logp, logps);
  device.upload(lse, lses);
  if (entropy) device.upload(entropy, entropies);
}

}  // namespace

void Head::combine(std::span<const std::int32_t> own, TokenScores& scores, Tensor whole_lse) const {
  if (tp == nullptr) return;
  merge_parts(*this, own, scores.logp, scores.lse, scores.entropy);
  Tensor no_logp;
  if (whole_lse) merge_parts(*this, own, no_logp, whole_lse, scores.whole_entropy);
}

Tensor Head::down_project(const Tensor& hidden, ops::Precision precision) const {
  const ops::PreparedLayout none;
  return lora.down_project(hidden, {*device, none, precision}, nullptr);
}

void Head::adapter_backward(const Tensor& hidden, ops::HeadAdapter& adapter,
                            ops::Precision precision, Tensor& dhidden) const {
  const ops::PreparedLayout none;
  if (lora) lora.down_backward(hidden, adapter.ddown, {*device, none, precision}, dhidden);
}

Tensor Head::adapter_input(const Tensor& hidden, ops::Precision precision) const {
  if (lora) return down_project(hidden, precision);
  Tensor ones = device->empty({hidden.shape()[0], 1});
  device->fill(ones, 1);
  return ones;
}

Tensor Head::adapter_matrix() const {
  return lora ? lora.b->value : bias->f32(*device).view({bias->value.count(), 1});
}

ops::HeadAdapter Head::adapter_inputs(const Tensor& hidden, ops::Precision precision,
                                      const Tensor& dbias) const {
  if (!has_adapter()) return {};
  const Tensor input = adapter_input(hidden, precision), matrix = adapter_matrix();
  Tensor gradient = lora ? lora.b->grad : dbias;
  if (!gradient) {  // of a frozen bias
    gradient = device->empty(matrix.shape());
    device->fill(gradient, 0);
  }
  return {input, matrix, device->empty(input.shape()), gradient.view(matrix.shape())};
}

TokenScores Head::allocate(std::size_t rows, bool with_entropy, bool whole_entropy) const {
  const auto column = [&] { return device->empty({static_cast<std::int64_t>(rows)}); };
  return {column(),
          column(),
          with_entropy ? column() : Tensor(),
          whole_entropy ? column() : Tensor(),
          {}};
}

TokenScores Head::forward(const Tensor& hidden, const HeadTargets& targets, bool with_entropy,
                          bool keep) const {
  const TargetsOfPart own(*weight, targets);
  TokenScores scores = allocate(targets.ids.size(), with_entropy, targets.whole_entropy);
  Tensor whole_lse = targets.whole_entropy ? device->empty(scores.lse.shape()) : Tensor();
  const ops::HeadAdapter adapter =
      has_adapter()
          ? ops::HeadAdapter{adapter_input(hidden, targets.precision), adapter_matrix(), {}, {}}
          : ops::HeadAdapter();
  device->head({hidden, matrix(), device->indices(own.ids()), scale_at(targets.inv_temperature),
                targets.precision, has_adapter() ? &adapter : nullptr, own.columns()},
               {scores.logp, scores.lse, with_entropy ? &scores.entropy : nullptr,
                keep ? &scores.saved_logits : nullptr, whole_lse ? &whole_lse : nullptr,
                whole_lse ? &scores.whole_entropy : nullptr});
  combine(own.ids(), scores, whole_lse);
  return scores;
}

Tensor Head::backward(const Tensor& hidden, const HeadTargets& targets, const TokenScores& scores,
                      const Tensor& dlogp, const Tensor& dentropy) const {
  const TargetsOfPart own(*weight, targets);
  Tensor dhidden = device->empty(hidden.shape());
  MatrixInTraining matrix(*this);
  ops::HeadAdapter adapter = adapter_inputs(hidden, targets.precision, matrix.dbias());
  device->head_backward(
      {hidden, matrix.rows, device->indices(own.ids()), scale_at(targets.inv_temperature),
       targets.precision, has_adapter() ? &adapter : nullptr, own.columns()},
      {scores.lse, dentropy ? &scores.entropy : nullptr, &scores.saved_logits},
      {dlogp, dentropy ? &dentropy : nullptr},
      {dhidden, matrix.gradient.f32(), has_adapter() ? &adapter : nullptr, matrix.accumulates});
  matrix.finish();
  adapter_backward(hidden, adapter, targets.precision, dhidden);
  if (tp != nullptr) tp->all_reduce(dhidden, "gradients of the head");
  return dhidden;
}

Head::ForwardBackward Head::forward_backward(const Tensor& hidden, const HeadTargets& targets,
                                             const Tensor& dlogp, const Tensor& dentropy,
                                             bool with_entropy) const {
  if (tp != nullptr) {  // the softmax over all parts separates forward and backward
    TokenScores scores = forward(hidden, targets, with_entropy, true);
    Tensor dhidden = backward(hidden, targets, scores, dlogp, dentropy);
    scores.saved_logits = {};
    return {scores, dhidden};
  }
  const TargetsOfPart own(*weight, targets);
  ForwardBackward out{allocate(targets.ids.size(), with_entropy, targets.whole_entropy),
                      device->empty(hidden.shape())};
  Tensor whole_lse = targets.whole_entropy ? device->empty(out.scores.lse.shape()) : Tensor();
  MatrixInTraining matrix(*this);
  ops::HeadAdapter adapter = adapter_inputs(hidden, targets.precision, matrix.dbias());
  device->head_forward_backward(
      {hidden, matrix.rows, device->indices(own.ids()), scale_at(targets.inv_temperature),
       targets.precision, has_adapter() ? &adapter : nullptr, own.columns()},
      {dlogp, dentropy ? &dentropy : nullptr},
      {out.scores.logp, out.scores.lse, with_entropy ? &out.scores.entropy : nullptr, nullptr,
       whole_lse ? &whole_lse : nullptr, whole_lse ? &out.scores.whole_entropy : nullptr},
      {out.dhidden, matrix.gradient.f32(), has_adapter() ? &adapter : nullptr, matrix.accumulates});
  matrix.finish();
  adapter_backward(hidden, adapter, targets.precision, out.dhidden);
  return out;
}

// With z = logits / temperature: log sum_v p_v^2 = log sum_v exp(2 z_v - 2 lse), which is the lse
// at half the temperature, minus 2 lse.
std::vector<float> Head::collision(const Tensor& hidden, const HeadTargets& targets,
                                   const TokenScores& scores) const {
  HeadTargets at_half = targets;
  at_half.inv_temperature *= 2;
  std::vector<float> out = ops::to_host(*device, forward(hidden, at_half, false).lse);
  const std::vector<float> once = ops::to_host(*device, scores.lse);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] -= 2 * once[i];
  return out;
}

Tensor Head::logits(const Tensor& hidden, ops::Precision precision, bool packed,
                    const LoraRows* lora_rows) const {
  Tensor z = device->empty({hidden.shape()[0], weight->value.shape()[0]});  // [M, V/tp]
  if (normalized && !(packed && weight->packed))
    device->gemm(hidden, matrix(), z, {.transpose_b = true, .precision = precision});
  else
    weight->linear(*device, hidden, precision, packed, z);
  if (has_adapter())
    device->gemm(adapter_input(hidden, precision), adapter_matrix(), z,
                 {.transpose_b = true, .accumulate = true, .precision = precision});
  if (lora_rows != nullptr) {
    const ops::PreparedLayout none;
    lora_rows->apply(*weight, hidden, {*device, none, precision}, nullptr, z);
  }
  device->scale_logits(z, scale_at(1));
  return z;
}

std::vector<float> Head::gather_logits(const Tensor& logits) const {
  const auto mine = ops::to_host(*device, logits);
  if (tp == nullptr) return mine;
  const auto all = parallel::gather_floats(tp->ranks(), mine, "logits");
  const auto rows = logits.shape()[0], vocabulary = weight->shard.full;
  std::vector<float> out(all.size());
  auto from = all.begin();
  for (int rank = 0; rank < tp->size(); ++rank) {
    const auto part = parallel::even_range(vocabulary, rank, tp->size());
    for (std::int64_t row = 0; row < rows; ++row, from += part.size())
      std::copy_n(from, part.size(), out.begin() + row * vocabulary + part.begin);
  }
  return out;
}

TokenScores Head::scores(const Tensor& logits, const HeadTargets& targets) const {
  const TargetsOfPart own(*weight, targets);
  TokenScores scores = allocate(targets.ids.size(), false);
  device->token_logprob(logits, device->indices(own.ids()), targets.inv_temperature, scores.logp,
                        scores.lse, own.columns());
  combine(own.ids(), scores, {});
  return scores;
}

Tensor ScoreHead::forward(const Tensor& hidden) const {
  Tensor scores = device->empty({hidden.shape()[0], labels()});  // [M, C]
  device->gemm(hidden, weight->f32(*device), scores, {.transpose_b = true});
  if (bias) device->add_bias(scores, bias->f32(*device));
  return scores;
}

Tensor ScoreHead::backward(const Tensor& hidden, const Tensor& dscores) const {
  Tensor dhidden = device->empty(hidden.shape());  // [M, D]
  device->gemm(dscores, weight->f32(*device), dhidden, {});
  GradientSum dweight(*device, weight->grad);
  device->gemm(dscores, hidden, dweight.f32(), {.transpose_a = true, .accumulate = true});
  dweight.finish();
  if (bias) {
    GradientSum dbias(*device, bias->grad);
    device->bias_backward(dscores, dbias.f32());
    dbias.finish();
  }
  return dhidden;
}

}  // namespace troupe::engine::nn
