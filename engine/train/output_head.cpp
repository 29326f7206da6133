#include "engine/train/output_head.h"

#include <algorithm>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "engine/ops/phase.h"
#include "engine/ops/temperature.h"
#include "engine/parallel/all_reduce.h"

namespace troupe::engine::train {
namespace {

bool needs_logits(const loss::Needs& needs) {
  return needs.logp || needs.entropy || needs.whole_entropy || needs.collision;
}
bool reads_score_head(const loss::Needs& needs) {
  return needs.scores && needs.candidates.empty();
}

std::size_t score_columns(const loss::Needs& needs, const models::DecoderSpec& spec) {
  if (!needs.scores) return 0;
  return reads_score_head(needs) ? static_cast<std::size_t>(spec.labels) : needs.candidates.size();
}

// Values of [T] columns at some tokens: [tokens, columns].
std::vector<float> at_tokens(const std::vector<std::int32_t>& tokens,
                             std::span<const std::vector<float>> columns) {
  std::vector<float> out;
  out.reserve(tokens.size() * columns.size());
  for (const auto token : tokens)
    for (const auto& column : columns) out.push_back(column[static_cast<std::size_t>(token)]);
  return out;
}

}  // namespace

std::vector<std::vector<float>*> HeadOutputs::columns(const loss::Needs& needs,
                                                      const models::DecoderSpec& spec) {
  scores.resize(score_columns(needs, spec));
  std::vector<std::vector<float>*> all;
  if (needs.logp) all.push_back(&logp);
  if (needs.entropy) all.push_back(&entropy);
  if (needs.whole_entropy) all.push_back(&whole_entropy);
  if (needs.collision) all.push_back(&collision);
  for (auto& column : scores) all.push_back(&column);
  return all;
}

void HeadOutputs::append(HeadOutputs next, const loss::Needs& needs,
                         const models::DecoderSpec& spec) {
  const auto all = columns(needs, spec), more = next.columns(needs, spec);
  for (std::size_t c = 0; c < all.size(); ++c)
    all[c]->insert(all[c]->end(), more[c]->begin(), more[c]->end());
}

Result<> check_needs(const models::DecoderSpec& spec, const loss::Needs& needs) {
  const bool of_head = reads_score_head(needs);
  if (of_head && spec.labels == 0)
    return fail(Errc::usage,
                "the loss needs a score head, but this is a language model without one; load it "
                "with a new score head");
  if (spec.labels > 0 && (needs_logits(needs) || (needs.scores && !of_head)))
    return fail(Errc::usage,
                cat("the loss needs log-probabilities, but this model has a score head of ",
                    spec.labels, spec.labels == 1 ? " label" : " labels", " and no language head"));
  for (const auto id : needs.candidates)
    if (id < 0 || id >= spec.vocabulary)
      return fail(Errc::usage, cat("the candidate token ", id, " is outside the vocabulary of ",
                                   spec.vocabulary));
  return {};
}

OutputHead::OutputHead(const models::Decoder& model, const data::Experience& batch,
                       const loss::Needs& needs, OutputHeadOptions options)
    : model_(model),
      batch_(batch),
      needs_(needs),
      options_(options),
      inv_temperature_(ops::inverse_temperature(needs.temperature)) {
  value_or_throw(check_needs(model.spec(), needs));
  if (needs_logits(needs)) logprob_rows_ = rows_read_at(loss::ReadAt::before, 1);
  for (const auto token : logprob_rows_.tokens) {
    logprob_rows_.targets.push_back(batch.tokens[static_cast<std::size_t>(token)]);
    if (!batch.sampling_mask.empty())
      logprob_rows_.masks.push_back(batch.sampling_mask[static_cast<std::size_t>(token)]);
  }
  if (!needs.scores) return;
  score_rows_ = rows_read_at(needs.scores_at, std::max<std::size_t>(1, needs.candidates.size()));
  for (std::size_t i = 0; i < score_rows_.tokens.size(); ++i)
    score_rows_.targets.insert(score_rows_.targets.end(), needs.candidates.begin(),
                               needs.candidates.end());
}

OutputHead::GatheredRows OutputHead::rows_read_at(loss::ReadAt at, std::size_t copies) {
  const std::int32_t back = at == loss::ReadAt::before ? 1 : 0;
  std::vector<std::int32_t> tokens, read;
  for (std::size_t n = 0; n + 1 < batch_.offsets.size(); ++n)
    for (auto t = batch_.offsets[n] + back; t < batch_.offsets[n + 1]; ++t) {
      if (!options_.every_token && batch_.mask[static_cast<std::size_t>(t)] == 0) continue;
      tokens.push_back(t);
      read.push_back(t - back);
    }
  reads_ = reads_ || !tokens.empty();
  if (options_.context != nullptr)
    for (auto& row : read) row = options_.context->places[static_cast<std::size_t>(row)];
  GatheredRows rows;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (read[i] < 0) continue;  // another rank has it
    rows.tokens.push_back(tokens[i]);
    rows.rows.insert(rows.rows.end(), copies, read[i]);
  }
  return rows;
}

nn::HeadTargets OutputHead::targets_of(const GatheredRows& rows) const {
  return {rows.targets, inv_temperature_, options_.precision, &rows.masks, needs_.whole_entropy};
}

void OutputHead::gather(const Tensor& hidden, GatheredRows& rows) const {
  rows.hidden =
      model_.device().empty({static_cast<std::int64_t>(rows.rows.size()), hidden.shape()[1]});
  model_.device().gather_rows(hidden, model_.device().indices(rows.rows), rows.hidden);
}

std::vector<float> OutputHead::column(const GatheredRows& rows, const std::vector<float>& values,
                                      std::size_t first, std::size_t stride) const {
  std::vector<float> out(batch_.tokens.size(), 0.0f);
  for (std::size_t i = 0; i < rows.tokens.size(); ++i)
    out[static_cast<std::size_t>(rows.tokens[i])] = values[i * stride + first];
  return out;
}

OutputHead::Upstream OutputHead::upstream(const loss::ValueAndGrads& grads) const {
  ops::Device& device = model_.device();
  const auto rows = static_cast<std::int64_t>(logprob_rows_.rows.size());
  Upstream out{device.empty({rows}), {}};
  device.fill(out.dlogp, 0);
  if (!grads.dlogp.empty())
    device.upload(out.dlogp, at_tokens(logprob_rows_.tokens, std::span(&grads.dlogp, 1)));
  if (!grads.dentropy.empty())
    out.dentropy = ops::from_host(device, {rows},
                                  at_tokens(logprob_rows_.tokens, std::span(&grads.dentropy, 1)));
  return out;
}

void OutputHead::forward_logprobs(const Tensor& hidden, HeadOutputs& out,
                                  const loss::ValueAndGrads* known) {
  ops::Device& device = model_.device();
  std::vector<float> logp, entropy, whole_entropy, collision;
  if (!logprob_rows_.rows.empty()) {
    gather(hidden, logprob_rows_);
    const nn::Head& head = model_.head();
    if (known) {
      const Upstream up = upstream(*known);
      auto both = head.forward_backward(logprob_rows_.hidden, targets_of(logprob_rows_), up.dlogp,
                                        up.dentropy, needs_.entropy);
      logprob_rows_.scores = both.scores;
      logprob_rows_.dhidden = both.dhidden;
    } else {
      logprob_rows_.scores = head.forward(logprob_rows_.hidden, targets_of(logprob_rows_),
                                          needs_.entropy, options_.backward);
    }
    logp = ops::to_host(device, logprob_rows_.scores.logp);
    if (needs_.entropy) entropy = ops::to_host(device, logprob_rows_.scores.entropy);
    if (needs_.whole_entropy)
      whole_entropy = ops::to_host(device, logprob_rows_.scores.whole_entropy);
    if (needs_.collision)
      collision =
          head.collision(logprob_rows_.hidden, targets_of(logprob_rows_), logprob_rows_.scores);
  }
  if (needs_.logp) out.logp = column(logprob_rows_, logp, 0, 1);
  if (needs_.entropy) out.entropy = column(logprob_rows_, entropy, 0, 1);
  if (needs_.whole_entropy) out.whole_entropy = column(logprob_rows_, whole_entropy, 0, 1);
  if (needs_.collision) out.collision = column(logprob_rows_, collision, 0, 1);
}

void OutputHead::forward_scores(const Tensor& hidden, HeadOutputs& out) {
  ops::Device& device = model_.device();
  std::vector<float> values;  // [tokens, C]
  if (!score_rows_.rows.empty()) {
    gather(hidden, score_rows_);
    if (reads_score_head(needs_)) {
      values = ops::to_host(device, model_.score().forward(score_rows_.hidden));
    } else {
      score_rows_.scores = model_.head().forward(score_rows_.hidden, targets_of(score_rows_), false,
                                                 options_.backward);
      values = ops::to_host(device, score_rows_.scores.logp);
    }
  }
  const std::size_t labels = score_columns(needs_, model_.spec());
  for (std::size_t c = 0; c < labels; ++c)
    out.scores.push_back(column(score_rows_, values, c, labels));
}

// Each token's outputs are on one rank, the others have 0: the sum is exact.
void OutputHead::share_outputs(HeadOutputs& out) const {
  for (auto* column : out.columns(needs_, model_.spec()))
    parallel::all_reduce_sum(*options_.context->groups->all, *column,
                             "the outputs of a micro-batch");
}

HeadOutputs OutputHead::forward(const Tensor& hidden, const loss::ValueAndGrads* known) {
  return ops::in_phase(model_.device(), "head", [&] {
    HeadOutputs out;
    if (needs_logits(needs_)) forward_logprobs(hidden, out, known);
    if (needs_.scores) forward_scores(hidden, out);
    if (options_.context != nullptr && !empty()) share_outputs(out);
    return out;
  });
}

Tensor OutputHead::logprobs_backward(const loss::ValueAndGrads& grads) const {
  if (logprob_rows_.dhidden) return logprob_rows_.dhidden;
  const Upstream up = upstream(grads);
  return model_.head().backward(logprob_rows_.hidden, targets_of(logprob_rows_),
                                logprob_rows_.scores, up.dlogp, up.dentropy);
}

Tensor OutputHead::scores_backward(const loss::ValueAndGrads& grads) const {
  ops::Device& device = model_.device();
  const auto tokens = static_cast<std::int64_t>(score_rows_.tokens.size()),
             labels = static_cast<std::int64_t>(grads.dscores.size());
  const auto values = at_tokens(score_rows_.tokens, grads.dscores);
  if (reads_score_head(needs_))
    return model_.score().backward(score_rows_.hidden,
                                   ops::from_host(device, {tokens, labels}, values));
  return model_.head().backward(score_rows_.hidden, targets_of(score_rows_), score_rows_.scores,
                                ops::from_host(device, {tokens * labels}, values), Tensor());
}

Tensor OutputHead::backward(const loss::ValueAndGrads& grads) const {
  ops::Device& device = model_.device();
  const std::int64_t rows =
      options_.context ? options_.context->own().size() : std::ssize(batch_.tokens);
  Tensor dhidden = device.empty({rows, model_.spec().width});  // [T, D]
  ops::in_phase(device, "head_backward", [&] {
    device.fill(dhidden, 0);
    if (!logprob_rows_.rows.empty())
      device.scatter_add_rows(logprobs_backward(grads), device.indices(logprob_rows_.rows),
                              dhidden);
    if (!score_rows_.rows.empty())
      device.scatter_add_rows(scores_backward(grads), device.indices(score_rows_.rows), dhidden);
  });
  return dhidden;
}

}  // namespace troupe::engine::train
