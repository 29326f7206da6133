#include "engine/train/scoring.h"

#include "engine/base/check.h"
#include "engine/ops/phase.h"
#include "engine/train/partition.h"
#include "engine/train/shared_prefixes.h"

namespace troupe::engine::train {

ops::Layout layout_of(const data::Experience& batch) {
  ops::Layout layout{batch.offsets, {}};
  layout.positions.reserve(batch.tokens.size());
  for (std::size_t n = 0; n + 1 < batch.offsets.size(); ++n)
    for (std::int32_t position = 0; position < batch.offsets[n + 1] - batch.offsets[n]; ++position)
      layout.positions.push_back(position);
  return layout;
}

std::optional<nn::Dropout> dropout_of(const data::Experience& part,
                                      std::optional<std::uint64_t> key) {
  if (!key) return std::nullopt;
  check(part.number.size() == static_cast<std::size_t>(part.sequences()),
        "dropout_of: sequences without numbers");
  nn::Dropout dropout{*key, {}};
  dropout.rows.reserve(part.tokens.size());
  for (std::size_t n = 0; n < part.number.size(); ++n)
    for (std::int32_t position = 0; position < part.offsets[n + 1] - part.offsets[n]; ++position)
      dropout.rows.push_back(part.number[n] << 32 | static_cast<std::uint32_t>(position));
  return dropout;
}

namespace {

HeadOutputs forward_part(models::Decoder& decoder, const data::Experience& batch,
                         const loss::Needs& needs, const ScoringOptions& options) {
  OutputHead head(decoder, batch, needs, {options.precision, options.every_token});
  if (head.empty()) return head.forward({});
  const ops::Layout layout = layout_of(batch);
  nn::Saved nothing = nn::Saved::nothing();
  const auto dropout = dropout_of(batch, options.dropout);
  const auto shared = dropout ? std::nullopt : shared_prefixes(batch, decoder.spec());
  nn::ForwardContext pass{decoder.device(), layout, options.precision,
                          nullptr,          {},     dropout ? &*dropout : nullptr};
  pass.shared = shared ? &*shared : nullptr;
  return head.forward(ops::in_phase(decoder.device(), "forward",
                                    [&] { return decoder.forward(batch.tokens, pass, nothing); }));
}

HeadOutputs local_head_outputs(models::Decoder& decoder, const data::Experience& batch,
                               const loss::Needs& needs, const ScoringOptions& options) {
  return ops::in_phase(decoder.device(), "score", [&] {
    HeadOutputs all;
    all.columns(needs, decoder.spec());
    const auto bounds = data::micro_batches(batch, options.micro_batch_tokens);
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
      all.append(forward_part(decoder, batch.slice(bounds[i], bounds[i + 1]), needs, options),
                 needs, decoder.spec());
    return all;
  });
}

}  // namespace

HeadOutputs head_outputs(models::Decoder& decoder, const data::Experience& batch,
                         const loss::Needs& needs, const ScoringOptions& options,
                         parallel::Communicator* dp) {
  batch.validate(decoder.spec().vocabulary);
  value_or_throw(check_needs(decoder.spec(), needs));
  if (dp == nullptr || dp->size() == 1) return local_head_outputs(decoder, batch, needs, options);
  const auto partitions = partition_by_tokens(batch, dp->size());
  HeadOutputs all = local_head_outputs(
      decoder, batch.select(partitions[static_cast<std::size_t>(dp->rank())]), needs, options);
  for (auto* column : all.columns(needs, decoder.spec()))
    *column = gather_column(*dp, *column, batch, partitions, "the outputs of a batch");
  return all;
}

std::vector<float> logprobs(models::Decoder& decoder, const data::Experience& batch,
                            const ScoringOptions& options, parallel::Communicator* dp) {
  return head_outputs(decoder, batch, {.temperature = options.temperature}, options, dp).logp;
}

std::vector<float> scores(models::Decoder& decoder, const data::Experience& batch, loss::ReadAt at,
                          const std::vector<std::int32_t>& candidates,
                          const ScoringOptions& options, parallel::Communicator* dp) {
  const loss::Needs needs{.logp = false,
                          .scores = true,
                          .scores_at = at,
                          .candidates = candidates,
                          .temperature = options.temperature};
  const auto columns = head_outputs(decoder, batch, needs, options, dp).scores;
  std::vector<float> out;
  out.reserve(batch.tokens.size() * columns.size());
  for (std::size_t t = 0; t < batch.tokens.size(); ++t)
    for (const auto& column : columns) out.push_back(column[t]);
  return out;
}

}  // namespace troupe::engine::train
