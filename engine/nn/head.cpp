#include "engine/nn/head.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/nn/lora_rows.h"
#include "engine/nn/normalized_rows.h"
#include "engine/nn/tensor_parallel.h"
#include "engine/parallel/all_reduce.h"

namespace troupe::engine::nn {

namespace {

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

  explicit MatrixInTraining(const Head& head)
      : accumulates(!head.normalized && head.weight->next_gemm_accumulates()),
        gradient(*head.device, head.normalized ? Tensor() : head.weight->grad, accumulates) {
    if (head.normalized) {
      normal.emplace(*head.device, *head.weight);
      if (head.weight->grad) gradient.f32() = head.device->empty(head.weight->grad.shape());
    }
    rows = normal ? normal->rows() : head.weight->f32(*head.device);
  }
  void finish() {
    gradient.finish();
    if (normal && gradient.f32()) normal->backward(gradient.f32());
  }
};

}  // namespace

Tensor Head::matrix() const {
  return normalized ? NormalizedRows(*device, *weight).rows() : weight->f32(*device);
}

void Head::combine(std::span<const std::int32_t> own, TokenScores& scores) const {
  if (tp == nullptr) return;
  auto logp = ops::to_host(*device, scores.logp), lse = ops::to_host(*device, scores.lse);
  auto entropy =
      scores.entropy ? ops::to_host(*device, scores.entropy) : std::vector<float>(own.size(), 0.0f);
  std::vector<VocabularyShard> mine, all(own.size() * static_cast<std::size_t>(tp->size()));
  for (std::size_t i = 0; i < own.size(); ++i)
    mine.push_back({logp[i], lse[i], entropy[i], own[i] >= 0 ? 1 : 0});
  tp->all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                 "log-probabilities");
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i] == ops::no_target) continue;
    const VocabularyShard whole = merge_shards(all, i, own.size());
    logp[i] = whole.logp;
    lse[i] = whole.lse;
    entropy[i] = whole.entropy;
  }
  device->upload(scores.logp, logp);
  device->upload(scores.lse, lse);
  if (scores.entropy) device->upload(scores.entropy, entropy);
}

Tensor Head::down_project(const Tensor& hidden, ops::Precision precision) const {
  const ops::Layout none;
  return lora.down_project(hidden, {*device, none, precision}, nullptr);
}

void Head::adapter_backward(const Tensor& hidden, ops::HeadAdapter& adapter,
                            ops::Precision precision, Tensor& dhidden) const {
  const ops::Layout none;
  if (lora) lora.down_backward(hidden, adapter.ddown, {*device, none, precision}, dhidden);
}

ops::HeadAdapter Head::adapter_inputs(const Tensor& hidden, ops::Precision precision) const {
  if (!lora) return {};
  return {down_project(hidden, precision), lora.b->value,
          device->empty({hidden.shape()[0], lora.a->value.shape()[0]}), lora.b->grad};
}

TokenScores Head::allocate(std::size_t rows, bool with_entropy) const {
  const auto column = [&] { return device->empty({static_cast<std::int64_t>(rows)}); };
  return {column(), column(), with_entropy ? column() : Tensor(), {}};
}

TokenScores Head::forward(const Tensor& hidden, std::span<const std::int32_t> targets,
                          float inv_temperature, ops::Precision precision, bool with_entropy,
                          bool keep) const {
  std::vector<std::int32_t> storage;
  const auto own = local_rows(*weight, targets, ops::target_elsewhere, storage);
  TokenScores scores = allocate(targets.size(), with_entropy);
  const ops::HeadAdapter adapter =
      lora ? ops::HeadAdapter{down_project(hidden, precision), lora.b->value, {}, {}}
           : ops::HeadAdapter();
  device->head(
      {hidden, matrix(), own, scale_at(inv_temperature), precision, lora ? &adapter : nullptr},
      {scores.logp, scores.lse, with_entropy ? &scores.entropy : nullptr,
       keep ? &scores.saved_logits : nullptr});
  combine(own, scores);
  return scores;
}

Tensor Head::backward(const Tensor& hidden, std::span<const std::int32_t> targets,
                      float inv_temperature, ops::Precision precision, const TokenScores& scores,
                      const Tensor& dlogp, const Tensor& dentropy) const {
  std::vector<std::int32_t> storage;
  const auto own = local_rows(*weight, targets, ops::target_elsewhere, storage);
  Tensor dhidden = device->empty(hidden.shape());
  ops::HeadAdapter adapter = adapter_inputs(hidden, precision);
  MatrixInTraining matrix(*this);
  device->head_backward(
      {hidden, matrix.rows, own, scale_at(inv_temperature), precision, lora ? &adapter : nullptr},
      {scores.lse, dentropy ? &scores.entropy : nullptr, &scores.saved_logits},
      {dlogp, dentropy ? &dentropy : nullptr},
      {dhidden, matrix.gradient.f32(), lora ? &adapter : nullptr, matrix.accumulates});
  matrix.finish();
  adapter_backward(hidden, adapter, precision, dhidden);
  all_reduce(tp, *device, dhidden, "gradients of the head");
  return dhidden;
}

Head::ForwardBackward Head::forward_backward(const Tensor& hidden,
                                             std::span<const std::int32_t> targets,
                                             float inv_temperature, ops::Precision precision,
                                             const Tensor& dlogp, const Tensor& dentropy,
                                             bool with_entropy) const {
  if (tp != nullptr) {  // the softmax over all parts separates forward and backward
    TokenScores scores = forward(hidden, targets, inv_temperature, precision, with_entropy, true);
    Tensor dhidden = backward(hidden, targets, inv_temperature, precision, scores, dlogp, dentropy);
    scores.saved_logits = {};
    return {scores, dhidden};
  }
  ForwardBackward out{allocate(targets.size(), with_entropy), device->empty(hidden.shape())};
  ops::HeadAdapter adapter = adapter_inputs(hidden, precision);
  MatrixInTraining matrix(*this);
  device->head_forward_backward(
      {hidden, matrix.rows, targets, scale_at(inv_temperature), precision,
       lora ? &adapter : nullptr},
      {dlogp, dentropy ? &dentropy : nullptr},
      {out.scores.logp, out.scores.lse, with_entropy ? &out.scores.entropy : nullptr},
      {out.dhidden, matrix.gradient.f32(), lora ? &adapter : nullptr, matrix.accumulates});
  matrix.finish();
  adapter_backward(hidden, adapter, precision, out.dhidden);
  return out;
}

// With z = logits / temperature: log sum_v p_v^2 = log sum_v exp(2 z_v - 2 lse), which is the lse
// at half the temperature, minus 2 lse.
std::vector<float> Head::collision(const Tensor& hidden, std::span<const std::int32_t> targets,
                                   float inv_temperature, ops::Precision precision,
                                   const TokenScores& scores) const {
  const TokenScores twice = forward(hidden, targets, 2 * inv_temperature, precision, false);
  std::vector<float> out = ops::to_host(*device, twice.lse);
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
  if (lora)
    device->gemm(down_project(hidden, precision), lora.b->value, z,
                 {.transpose_b = true, .accumulate = true, .precision = precision});
  if (lora_rows != nullptr) {
    const ops::Layout none;
    lora_rows->apply(*weight, hidden, {*device, none, precision}, nullptr, z);
  }
  device->scale_logits(z, scale_at(1));
  return z;
}

std::vector<float> Head::gather_logits(const Tensor& logits) const {
  const auto mine = ops::to_host(*device, logits);
  if (tp == nullptr) return mine;
  const auto all = parallel::gather_floats(*tp, mine, "logits");
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

TokenScores Head::scores(const Tensor& logits, std::span<const std::int32_t> targets,
                         float inv_temperature) const {
  const auto rows = static_cast<std::int64_t>(targets.size());
  std::vector<std::int32_t> storage;
  const auto own = local_rows(*weight, targets, ops::target_elsewhere, storage);
  TokenScores scores{device->empty({rows}), device->empty({rows}), {}, {}};
  device->token_logprob(logits, own, inv_temperature, scores.logp, scores.lse);
  combine(own, scores);
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
