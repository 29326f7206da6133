#include "engine/train/scoring.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/ops/temperature.h"
#include "engine/parallel/reduce.h"
#include "engine/train/share.h"

namespace troupe::engine::train {

HeadRows head_rows(const data::Experience& batch, bool every_token) {
  HeadRows head;
  for (std::size_t n = 0; n + 1 < batch.offsets.size(); ++n) {
    for (auto t = batch.offsets[n] + 1; t < batch.offsets[n + 1]; ++t) {
      const auto token = static_cast<std::size_t>(t);
      if (!every_token && batch.mask[token] == 0) continue;
      head.rows.push_back(t - 1);
      head.targets.push_back(batch.tokens[token]);
    }
  }
  return head;
}

ops::Layout layout_of(const data::Experience& batch) {
  ops::Layout layout{batch.offsets, {}};
  layout.positions.reserve(batch.tokens.size());
  for (std::size_t n = 0; n + 1 < batch.offsets.size(); ++n)
    for (std::int32_t position = 0; position < batch.offsets[n + 1] - batch.offsets[n]; ++position) layout.positions.push_back(position);
  return layout;
}

namespace {

void score(models::Decoder& decoder, const data::Experience& batch, const ScoringOptions& options, std::vector<float>& out) {
  ops::Device& device = decoder.device();
  const std::size_t start = out.size();
  out.resize(start + batch.tokens.size(), 0.0f);
  const HeadRows head = head_rows(batch, options.every_token);
  if (head.rows.empty()) return;
  const ops::Layout layout = layout_of(batch);
  nn::Saved nothing = nn::Saved::nothing();
  const Tensor hidden = decoder.forward(batch.tokens, {device, layout, options.precision}, nothing);
  const auto count = static_cast<std::int64_t>(head.rows.size());
  Tensor wanted = device.empty({count, hidden.shape()[1]});  // [M, D]
  device.gather_rows(hidden, head.rows, wanted);
  const auto scores = decoder.head().forward(wanted, head.targets, ops::inverse_temperature(options.temperature), options.precision, false);
  const auto values = ops::to_host(device, scores.logp);
  for (std::size_t i = 0; i < values.size(); ++i) out[start + static_cast<std::size_t>(head.rows[i]) + 1] = values[i];
}

std::vector<float> score_all(models::Decoder& decoder, const data::Experience& batch, const ScoringOptions& options) {
  std::vector<float> out;
  out.reserve(batch.tokens.size());
  const auto bounds = data::micro_batches(batch, options.micro_batch_tokens);
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) score(decoder, batch.slice(bounds[i], bounds[i + 1]), options, out);
  return out;
}

// What the ranks found for their sequences, one rank after the other, in the order of the batch.
std::vector<float> in_place(const std::vector<float>& found, const data::Experience& batch, const std::vector<Share>& shares) {
  std::vector<float> out(batch.tokens.size());
  auto from = found.begin();
  for (const Share& share : shares)
    for (const auto n : share) {
      const auto begin = batch.offsets[static_cast<std::size_t>(n)], length = batch.offsets[static_cast<std::size_t>(n) + 1] - begin;
      std::copy_n(from, length, out.begin() + begin);
      from += length;
    }
  return out;
}

}  // namespace

std::vector<float> logprobs(models::Decoder& decoder, const data::Experience& batch, const ScoringOptions& options,
                            parallel::Communicator* dp) {
  batch.validate(decoder.spec().vocabulary);
  if (dp == nullptr || dp->size() == 1) return score_all(decoder, batch, options);
  const auto shares = share_out(batch, dp->size());
  const auto mine = score_all(decoder, batch.select(shares[static_cast<std::size_t>(dp->rank())]), options);
  return in_place(parallel::gather_floats(*dp, mine, "log-probabilities of a batch"), batch, shares);
}

}  // namespace troupe::engine::train
