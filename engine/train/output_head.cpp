#include "engine/train/output_head.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/text.h"
#include "engine/ops/phase.h"
#include "engine/ops/temperature.h"

namespace troupe::engine::train {
namespace {

bool needs_words(const loss::Needs& needs) {
  return needs.logp || needs.entropy || needs.collision;
}
bool of_score_head(const loss::Needs& needs) {
  return needs.scores && needs.candidates.empty();
}

std::size_t score_columns(const loss::Needs& needs, const models::DecoderSpec& spec) {
  if (!needs.scores) return 0;
  return of_score_head(needs) ? static_cast<std::size_t>(spec.labels) : needs.candidates.size();
}

// What [T] columns hold at some tokens: [tokens, columns].
std::vector<float> at_tokens(const std::vector<std::int32_t>& tokens,
                             std::span<const std::vector<float>> columns) {
  std::vector<float> out;
  out.reserve(tokens.size() * columns.size());
  for (const auto token : tokens)
    for (const auto& column : columns) out.push_back(column[static_cast<std::size_t>(token)]);
  return out;
}

}  // namespace

std::vector<std::vector<float>*> Readings::columns(const loss::Needs& needs,
                                                   const models::DecoderSpec& spec) {
  scores.resize(score_columns(needs, spec));
  std::vector<std::vector<float>*> all;
  if (needs.logp) all.push_back(&logp);
  if (needs.entropy) all.push_back(&entropy);
  if (needs.collision) all.push_back(&collision);
  for (auto& column : scores) all.push_back(&column);
  return all;
}

Result<> check_readable(const models::DecoderSpec& spec, const loss::Needs& needs) {
  const bool of_head = of_score_head(needs);
  if (of_head && spec.labels == 0)
    return fail(Errc::usage,
                "the loss reads a score head, and this is a language model without one: load it "
                "with a fresh head");
  if (spec.labels > 0 && (needs_words(needs) || (needs.scores && !of_head)))
    return fail(Errc::usage,
                cat("the loss reads log-probabilities, and this model has a score head of ",
                    spec.labels, " labels and no language head"));
  for (const auto id : needs.candidates)
    if (id < 0 || id >= spec.vocabulary)
      return fail(Errc::usage, cat("the candidate token ", id, " is outside the vocabulary of ",
                                   spec.vocabulary));
  return {};
}

Readout::Readout(const models::Decoder& model, const data::Experience& batch,
                 const loss::Needs& needs, ReadoutOptions options)
    : model_(model),
      batch_(batch),
      needs_(needs),
      options_(options),
      inv_temperature_(ops::inverse_temperature(needs.temperature)) {
  value_or_throw(check_readable(model.spec(), needs));
  if (needs_words(needs)) words_ = pick(loss::ReadAt::before, 1);
  for (const auto token : words_.tokens)
    words_.targets.push_back(batch.tokens[static_cast<std::size_t>(token)]);
  if (!needs.scores) return;
  scores_ = pick(needs.scores_at, std::max<std::size_t>(1, needs.candidates.size()));
  for (std::size_t i = 0; i < scores_.tokens.size(); ++i)
    scores_.targets.insert(scores_.targets.end(), needs.candidates.begin(), needs.candidates.end());
}

Readout::Picked Readout::pick(loss::ReadAt at, std::size_t copies) const {
  const std::int32_t back = at == loss::ReadAt::before ? 1 : 0;
  Picked picked;
  for (std::size_t n = 0; n + 1 < batch_.offsets.size(); ++n)
    for (auto t = batch_.offsets[n] + back; t < batch_.offsets[n + 1]; ++t) {
      if (!options_.every_token && batch_.mask[static_cast<std::size_t>(t)] == 0) continue;
      picked.tokens.push_back(t);
      picked.rows.insert(picked.rows.end(), copies, t - back);
    }
  return picked;
}

void Readout::gather(const Tensor& hidden, Picked& picked) const {
  picked.hidden =
      model_.device().empty({static_cast<std::int64_t>(picked.rows.size()), hidden.shape()[1]});
  model_.device().gather_rows(hidden, picked.rows, picked.hidden);
}

std::vector<float> Readout::column(const Picked& picked, const std::vector<float>& values,
                                   std::size_t first, std::size_t stride) const {
  std::vector<float> out(batch_.tokens.size(), 0.0f);
  for (std::size_t i = 0; i < picked.tokens.size(); ++i)
    out[static_cast<std::size_t>(picked.tokens[i])] = values[i * stride + first];
  return out;
}

Readout::Upstream Readout::upstream(const loss::Evaluation& slopes) const {
  ops::Device& device = model_.device();
  const auto rows = static_cast<std::int64_t>(words_.rows.size());
  Upstream out{device.empty({rows}), {}};
  device.fill(out.dlogp, 0);
  if (!slopes.dlogp.empty())
    device.upload(out.dlogp, at_tokens(words_.tokens, std::span(&slopes.dlogp, 1)));
  if (!slopes.dentropy.empty())
    out.dentropy =
        ops::from_host(device, {rows}, at_tokens(words_.tokens, std::span(&slopes.dentropy, 1)));
  return out;
}

void Readout::read_words(const Tensor& hidden, Readings& out, const loss::Evaluation* known) {
  ops::Device& device = model_.device();
  std::vector<float> logp, entropy, collision;
  if (!words_.rows.empty()) {
    gather(hidden, words_);
    const nn::Head& head = model_.head();
    if (known) {
      const Upstream up = upstream(*known);
      auto both = head.through(words_.hidden, words_.targets, inv_temperature_, options_.precision,
                               up.dlogp, up.dentropy, needs_.entropy);
      words_.scores = both.scores, words_.dhidden = both.dhidden;
    } else {
      words_.scores = head.forward(words_.hidden, words_.targets, inv_temperature_,
                                   options_.precision, needs_.entropy, options_.backward);
    }
    logp = ops::to_host(device, words_.scores.logp);
    if (needs_.entropy) entropy = ops::to_host(device, words_.scores.entropy);
    if (needs_.collision)
      collision = head.collision(words_.hidden, words_.targets, inv_temperature_,
                                 options_.precision, words_.scores);
  }
  if (needs_.logp) out.logp = column(words_, logp, 0, 1);
  if (needs_.entropy) out.entropy = column(words_, entropy, 0, 1);
  if (needs_.collision) out.collision = column(words_, collision, 0, 1);
}

void Readout::read_scores(const Tensor& hidden, Readings& out) {
  ops::Device& device = model_.device();
  std::vector<float> values;  // [tokens, C]
  if (!scores_.rows.empty()) {
    gather(hidden, scores_);
    if (of_score_head(needs_)) {
      values = ops::to_host(device, model_.score().forward(scores_.hidden));
    } else {
      scores_.scores = model_.head().forward(scores_.hidden, scores_.targets, inv_temperature_,
                                             options_.precision, false, options_.backward);
      values = ops::to_host(device, scores_.scores.logp);
    }
  }
  const std::size_t labels = score_columns(needs_, model_.spec());
  for (std::size_t c = 0; c < labels; ++c) out.scores.push_back(column(scores_, values, c, labels));
}

Readings Readout::read(const Tensor& hidden, const loss::Evaluation* known) {
  return ops::in_phase(model_.device(), "head", [&] {
    Readings out;
    if (needs_words(needs_)) read_words(hidden, out, known);
    if (needs_.scores) read_scores(hidden, out);
    return out;
  });
}

Tensor Readout::words_backward(const loss::Evaluation& slopes) const {
  if (words_.dhidden) return words_.dhidden;
  const Upstream up = upstream(slopes);
  return model_.head().backward(words_.hidden, words_.targets, inv_temperature_, options_.precision,
                                words_.scores, up.dlogp, up.dentropy);
}

Tensor Readout::scores_backward(const loss::Evaluation& slopes) const {
  ops::Device& device = model_.device();
  const auto tokens = static_cast<std::int64_t>(scores_.tokens.size()),
             labels = static_cast<std::int64_t>(slopes.dscores.size());
  const auto values = at_tokens(scores_.tokens, slopes.dscores);
  if (of_score_head(needs_))
    return model_.score().backward(scores_.hidden,
                                   ops::from_host(device, {tokens, labels}, values));
  return model_.head().backward(scores_.hidden, scores_.targets, inv_temperature_,
                                options_.precision, scores_.scores,
                                ops::from_host(device, {tokens * labels}, values), Tensor());
}

Tensor Readout::backward(const loss::Evaluation& slopes) const {
  ops::Device& device = model_.device();
  Tensor dhidden = device.empty(
      {static_cast<std::int64_t>(batch_.tokens.size()), model_.spec().width});  // [T, D]
  ops::in_phase(device, "head_backward", [&] {
    device.fill(dhidden, 0);
    if (!words_.rows.empty()) device.scatter_add_rows(words_backward(slopes), words_.rows, dhidden);
    if (!scores_.rows.empty())
      device.scatter_add_rows(scores_backward(slopes), scores_.rows, dhidden);
  });
  return dhidden;
}

}  // namespace troupe::engine::train
