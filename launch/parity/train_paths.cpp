#include "launch/parity/train_paths.h"

#include <optional>
#include <utility>

#include "engine/data/experience.h"
#include "engine/train/micro_batches.h"
#include "engine/train/scoring.h"

namespace troupe::launch::parity {
namespace {

using engine::data::Experience;
namespace loss = engine::loss;
namespace train_ = engine::train;

constexpr std::int32_t micro_batch_tokens = 64;

Experience batch_of(std::span<const Text> texts) {
  Experience batch;
  for (const Text& text : texts) {
    std::vector<float> mask(text.tokens.size(), 1.0F);
    mask.front() = 0;
    batch.append(text.tokens, mask);
  }
  batch.count = static_cast<double>(batch.tokens.size());
  return batch;
}

std::vector<TextValues> values_of(const Experience& batch, const train_::HeadOutputs& outputs) {
  std::vector<TextValues> all;
  for (std::size_t n = 0; n + 1 < batch.offsets.size(); ++n) {
    TextValues& text = all.emplace_back();
    for (auto t = static_cast<std::size_t>(batch.offsets[n]) + 1;
         t < static_cast<std::size_t>(batch.offsets[n + 1]); ++t)
      text.tokens.push_back(
          {batch.tokens[t], outputs.logp[t], std::nullopt, outputs.entropy[t], std::nullopt});
  }
  return all;
}

/// A gradient of each log-probability, so that the backward pass runs.
loss::ValueAndGrads gradients_of(const Experience& part) {
  loss::ValueAndGrads grads;
  grads.dlogp.assign(part.tokens.size(), 1e-3F);
  return grads;
}

std::vector<TextValues> passes(const PathInputs& in, bool known) {
  const Experience batch = batch_of(in.texts);
  const loss::Needs needs{.entropy = true};
  train_::HeadOutputs all;
  all.columns(needs, in.decoder.spec());
  const auto parts = train_::split_into_parts(batch, micro_batch_tokens);
  train_::MicroBatches work{parts, needs, {}, {}};
  if (known) work.known = [&](std::size_t part) { return gradients_of(parts[part]); };
  work.loss = [&](std::size_t part, train_::HeadOutputs outputs) {
    all.append(std::move(outputs), needs, in.decoder.spec());
    return gradients_of(parts[part]);
  };
  train_::run_micro_batches(in.decoder, work, {.precision = in.precision, .every_token = true});
  return values_of(batch, all);
}

}  // namespace

std::vector<TextValues> score(const PathInputs& in) {
  const Experience batch = batch_of(in.texts);
  return values_of(batch, train_::head_outputs(in.decoder, batch, {.entropy = true},
                                               {.precision = in.precision, .every_token = true}));
}

std::vector<TextValues> train(const PathInputs& in) {
  return passes(in, false);
}

std::vector<TextValues> train_at_once(const PathInputs& in) {
  return passes(in, true);
}

std::vector<float> scored_tokens(const PathInputs& in, const Text& text, std::int32_t position,
                                 const std::vector<std::int32_t>& ids) {
  Experience batch;
  std::vector<std::int32_t> tokens(text.tokens.begin(), text.tokens.begin() + position + 1);
  std::vector<float> mask(tokens.size(), 0.0F);
  mask.back() = 1;
  batch.append(tokens, mask);
  batch.count = 1;
  const std::vector<float> all =
      train_::scores(in.decoder, batch, loss::ReadAt::before, ids, {.precision = in.precision});
  return {all.end() - static_cast<std::ptrdiff_t>(ids.size()), all.end()};
}

}  // namespace troupe::launch::parity
