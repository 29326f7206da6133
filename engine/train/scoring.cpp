#include "engine/train/scoring.h"

#include <span>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/ops/phase.h"
#include "engine/train/micro_batches.h"
#include "engine/train/partition.h"

namespace troupe::engine::train {

ops::Layout layout_of(const data::Experience& batch) {
  ops::Layout layout{batch.offsets, {}};
  layout.positions.reserve(batch.tokens.size());
  for (std::size_t n = 0; n + 1 < batch.offsets.size(); ++n)
    for (std::int32_t position = 0; position < batch.offsets[n + 1] - batch.offsets[n]; ++position)
      layout.positions.push_back(position);
  return layout;
}

std::vector<std::uint64_t> row_ids(const data::Experience& part, const ops::Layout& layout) {
  check(part.number.size() == static_cast<std::size_t>(part.sequences()) &&
            layout.sequences() == part.sequences(),
        "row_ids: sequences without numbers");
  std::vector<std::uint64_t> ids;
  ids.reserve(layout.positions.size());
  for (std::size_t n = 0; n < part.number.size(); ++n)
    for (auto t = layout.offsets[n]; t < layout.offsets[n + 1]; ++t)
      ids.push_back(part.number[n] << 32 |
                    static_cast<std::uint32_t>(layout.positions[static_cast<std::size_t>(t)]));
  return ids;
}

namespace {

// The last stage has the outputs; the other stages receive them.
void share_outputs(parallel::Communicator& pp, HeadOutputs& outputs, const loss::Needs& needs,
                   const models::DecoderSpec& spec, std::size_t tokens) {
  for (auto* column : outputs.columns(needs, spec)) {
    column->resize(tokens);
    pp.broadcast(std::as_writable_bytes(std::span(*column)), pp.size() - 1,
                 "the outputs of the last stage");
  }
}

HeadOutputs local_head_outputs(models::Decoder& decoder, const data::Experience& batch,
                               const loss::Needs& needs, const ScoringOptions& options) {
  return ops::in_phase(decoder.device(), "score", [&] {
    HeadOutputs all;
    all.columns(needs, decoder.spec());
    const auto append = [&](std::size_t, HeadOutputs outputs) {
      all.append(std::move(outputs), needs, decoder.spec());
      return loss::ValueAndGrads();
    };
    run_micro_batches(decoder,
                      {split_into_parts(batch, options.micro_batch_tokens), needs, {}, append},
                      {.precision = options.precision,
                       .share_prefixes = !options.counts_routes,
                       .dropout = options.dropout,
                       .every_token = options.every_token,
                       .backward = false,
                       .every_row = options.counts_routes,
                       .counts_routes = options.counts_routes});
    if (decoder.pp() != nullptr)
      share_outputs(*decoder.pp(), all, needs, decoder.spec(), batch.tokens.size());
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
