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

std::optional<nn::Dropout> draws_of(const data::Experience& part,
                                    std::optional<std::uint64_t> key) {
  if (!key) return std::nullopt;
  check(part.number.size() == static_cast<std::size_t>(part.sequences()),
        "draws_of: sequences without numbers");
  nn::Dropout draws{*key, {}};
  draws.rows.reserve(part.tokens.size());
  for (std::size_t n = 0; n < part.number.size(); ++n)
    for (std::int32_t position = 0; position < part.offsets[n + 1] - part.offsets[n]; ++position)
      draws.rows.push_back(part.number[n] << 32 | static_cast<std::uint32_t>(position));
  return draws;
}

namespace {

Readings read(models::Decoder& decoder, const data::Experience& batch, const loss::Needs& needs,
              const ScoringOptions& options) {
  Readout readout(decoder, batch, needs, {options.precision, options.every_token});
  if (readout.empty()) return readout.read({});
  const ops::Layout layout = layout_of(batch);
  nn::Saved nothing = nn::Saved::nothing();
  const auto draws = draws_of(batch, options.dropout);
  const auto shared = draws ? std::nullopt : shared_prefixes(batch, decoder.spec());
  nn::Pass pass{decoder.device(), layout, options.precision,
                nullptr,          {},     draws ? &*draws : nullptr};
  pass.shared = shared ? &*shared : nullptr;
  return readout.read(ops::in_phase(decoder.device(), "forward",
                                    [&] { return decoder.forward(batch.tokens, pass, nothing); }));
}

Readings read_mine(models::Decoder& decoder, const data::Experience& batch,
                   const loss::Needs& needs, const ScoringOptions& options) {
  return ops::in_phase(decoder.device(), "score", [&] {
    Readings all;
    const auto columns = all.columns(needs, decoder.spec());
    const auto bounds = data::micro_batches(batch, options.micro_batch_tokens);
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      Readings part = read(decoder, batch.slice(bounds[i], bounds[i + 1]), needs, options);
      const auto more = part.columns(needs, decoder.spec());
      for (std::size_t c = 0; c < columns.size(); ++c)
        columns[c]->insert(columns[c]->end(), more[c]->begin(), more[c]->end());
    }
    return all;
  });
}

}  // namespace

Readings read_all(models::Decoder& decoder, const data::Experience& batch, const loss::Needs& needs,
                  const ScoringOptions& options, parallel::Communicator* dp) {
  batch.validate(decoder.spec().vocabulary);
  value_or_throw(check_readable(decoder.spec(), needs));
  if (dp == nullptr || dp->size() == 1) return read_mine(decoder, batch, needs, options);
  const auto shares = share_out(batch, dp->size());
  Readings all = read_mine(decoder, batch.select(shares[static_cast<std::size_t>(dp->rank())]),
                           needs, options);
  for (auto* column : all.columns(needs, decoder.spec()))
    *column = gather_column(*dp, *column, batch, shares, "what a model says of a batch");
  return all;
}

std::vector<float> logprobs(models::Decoder& decoder, const data::Experience& batch,
                            const ScoringOptions& options, parallel::Communicator* dp) {
  return read_all(decoder, batch, {.temperature = options.temperature}, options, dp).logp;
}

std::vector<float> scores(models::Decoder& decoder, const data::Experience& batch, loss::ReadAt at,
                          const std::vector<std::int32_t>& candidates,
                          const ScoringOptions& options, parallel::Communicator* dp) {
  const loss::Needs needs{.logp = false,
                          .scores = true,
                          .scores_at = at,
                          .candidates = candidates,
                          .temperature = options.temperature};
  const auto columns = read_all(decoder, batch, needs, options, dp).scores;
  std::vector<float> out;
  out.reserve(batch.tokens.size() * columns.size());
  for (std::size_t t = 0; t < batch.tokens.size(); ++t)
    for (const auto& column : columns) out.push_back(column[t]);
  return out;
}

}  // namespace troupe::engine::train
