#include "engine/generate/batch_sampler.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "engine/generate/host_logits.h"
#include "engine/generate/last_stage.h"
#include "engine/generate/sampler.h"
#include "engine/generate/validate_request.h"
#include "engine/nn/lora_rows.h"

namespace troupe::engine::generate {

namespace {

/// A SampledToken without its alternatives and its mask, for messages.
struct TokenMessage {
  std::uint64_t sequence = 0, position = 0;
  std::int32_t id = 0;
  float logp = 0, sampling_logp = 0;
  std::uint32_t alternatives = 0, mask_bytes = 0;
};

std::vector<TokenMessage> messages_of(std::span<const SampledToken> tokens) {
  std::vector<TokenMessage> out;
  for (const SampledToken& each : tokens)
    out.push_back({each.sequence, each.position, each.id, each.logp, each.sampling_logp,
                   static_cast<std::uint32_t>(each.top.size()),
                   static_cast<std::uint32_t>(each.mask.size())});
  return out;
}

std::vector<Alternative> alternatives_of(std::span<const SampledToken> tokens) {
  std::vector<Alternative> out;
  for (const SampledToken& each : tokens) out.insert(out.end(), each.top.begin(), each.top.end());
  return out;
}

std::vector<char> masks_of(std::span<const SampledToken> tokens) {
  std::vector<char> out;
  for (const SampledToken& each : tokens) out.insert(out.end(), each.mask.begin(), each.mask.end());
  return out;
}

/// Those that a request asks for.
std::vector<Alternative> alternatives_in(std::span<const float> logits, float lse,
                                         const Request& request) {
  if (request.reported.empty()) return top_alternatives(logits, lse, request.params.top_logprobs);
  std::vector<Alternative> out;
  for (const std::int32_t id : request.reported)
    out.push_back({id, logits[static_cast<std::size_t>(id)] - lse});
  return out;
}

std::vector<SampledToken> tokens_of(std::span<const TokenMessage> messages,
                                    std::span<const Alternative> alternatives,
                                    std::span<const char> masks) {
  std::vector<SampledToken> out;
  for (const TokenMessage& each : messages) {
    const auto top = alternatives.first(each.alternatives);
    out.push_back({each.sequence, each.position, each.id, each.logp, each.sampling_logp,
                   std::string(masks.data(), each.mask_bytes),
                   std::vector(top.begin(), top.end())});
    alternatives = alternatives.subspan(each.alternatives);
    masks = masks.subspan(each.mask_bytes);
  }
  return out;
}

bool reports_mask(const RowToSample& row) {
  return row.request->params.report_masks;
}

/// The sampling mask of row i.
std::string mask_of(const ops::KeptTokens& kept, std::size_t i, std::int64_t vocabulary) {
  const auto begin = kept.ids.begin();
  const std::span<const std::int32_t> ids(begin + kept.offsets[i], begin + kept.offsets[i + 1]);
  return ids.empty() ? std::string() : encode_id_set(ids, vocabulary);
}

/// The rows of a block, as their requests ask.
class RequestedRows final : public ops::HostSampler {
 public:
  explicit RequestedRows(std::span<const RowToSample> of) : of_(of) {
    for (const RowToSample& each : of)
      rows_.push_back(sampling_row(each.context(), each.request->sample_id));
  }
  ops::SamplingRows rows() const { return {rows_, *this}; }

  std::int32_t sample(std::int64_t row, std::span<const float> logits,
                      std::vector<std::int32_t>* kept) const override {
    const auto i = static_cast<std::size_t>(row);
    const RowToSample& each = of_[i];
    try {
      require_finite_logits(logits, *each.request, each.tokens.size());
      return sample_token(logits, each.context(), rows_[i], kept);
    } catch (const Failure& failure) {
      if (!each.drafted) throw RequestFailure(each.request->id, failure.error());
      return SampledToken::no_token;
    }
  }

 private:
  std::span<const RowToSample> of_;
  std::vector<ops::SamplingRow> rows_;
};

}  // namespace

std::vector<SampledToken> BatchSampler::sample(std::vector<RowToSample> rows,
                                               const Tensor& hidden) const {
  if (decoder_.pp() == nullptr) return sample_rows(std::move(rows), hidden);
  const bool with_top = std::ranges::any_of(
      rows, [](const RowToSample& each) { return each.request->has_alternatives(); });
  const bool with_masks = std::ranges::any_of(rows, reports_mask);
  const LastStage last(decoder_, "the sampled tokens");
  std::vector<SampledToken> sampled;  // on the last stage
  const auto messages = last.values<TokenMessage>([&] {
    sampled = sample_rows(std::move(rows), hidden);
    return messages_of(sampled);
  });
  std::vector<Alternative> alternatives;
  if (with_top) alternatives = last.values<Alternative>([&] { return alternatives_of(sampled); });
  std::vector<char> masks;
  if (with_masks) masks = last.values<char>([&] { return masks_of(sampled); });
  return tokens_of(messages, alternatives, masks);
}

std::vector<SampledToken> BatchSampler::sample_rows(std::vector<RowToSample> rows,
                                                    const Tensor& hidden) const {
  // One call of token_logprob serves one temperature: rows of equal temperature become neighbours.
  std::stable_sort(rows.begin(), rows.end(), [](const RowToSample& a, const RowToSample& b) {
    return a.inverse_temperature < b.inverse_temperature;
  });
  std::vector<SampledToken> out;
  const std::size_t block = HostLogits::block_rows(decoder_.spec());
  for (std::size_t i = 0; i < rows.size(); i += block)
    sample_block(std::span(rows).subspan(i, std::min(block, rows.size() - i)), hidden, out);
  std::erase_if(out, [](const SampledToken& each) { return each.id == SampledToken::no_token; });
  return out;
}

Tensor BatchSampler::logits(std::span<const RowToSample> rows, const Tensor& hidden) const {
  std::vector<std::int32_t> indices;
  nn::LoraRows lora;
  for (const RowToSample& each : rows) {
    lora.add(std::ssize(indices), 1, each.request->adapter.get());
    indices.push_back(each.row);
  }
  Tensor last = decoder_.device().empty({std::ssize(rows), decoder_.spec().width});  // [M, D]
  decoder_.device().gather_rows(hidden, decoder_.device().indices(indices), last);
  return decoder_.head().logits(last, precision_, packed_, &lora);
}

void BatchSampler::sample_block(std::span<const RowToSample> rows, const Tensor& hidden,
                                std::vector<SampledToken>& out) const {
  ops::Device& device = decoder_.device();
  const nn::Head& head = decoder_.head();
  const Tensor logits = this->logits(rows, hidden);  // [M, V/tp]
  const HostLogits host(decoder_, logits);

  std::vector<std::int32_t> ids;
  const RequestedRows requested(rows);
  ops::KeptTokens kept;
  ops::KeptTokens* const masks = std::ranges::any_of(rows, reports_mask) ? &kept : nullptr;
  nn::TokenScores scores;
  if (decoder_.tp() == nullptr) {
    scores.logp = device.empty({std::ssize(rows)});
    scores.lse = device.empty({std::ssize(rows)});
    device.sample(logits, requested.rows(), {ids, &scores.logp, &scores.lse, masks});
  } else {  // scores are combined from the parts of the vocabulary
    device.sample(host.whole(), requested.rows(), {ids, nullptr, nullptr, masks});
    scores = head.scores(logits, {ids});
  }
  const std::vector<float> logp = ops::to_host(device, scores.logp),
                           lse = ops::to_host(device, scores.lse);
  const std::size_t before = out.size();
  for (std::size_t i = 0; i < rows.size(); ++i)
    out.push_back({rows[i].sequence,
                   rows[i].tokens.size(),
                   ids[i],
                   logp[i],
                   logp[i],
                   reports_mask(rows[i]) ? mask_of(kept, i, decoder_.spec().vocabulary) : "",
                   {}});
  set_sampling_logprobs(rows, logits, std::span(out).subspan(before));
  const auto alternatives = [&](std::size_t i) { return rows[i].request->has_alternatives(); };
  if (std::ranges::none_of(std::views::iota(std::size_t{0}, rows.size()), alternatives)) return;
  host.for_each([&](std::size_t i, std::span<const float> row) {
    out[before + i].top = alternatives_in(row, lse[i], *rows[i].request);
  });
}

/// Changes sampling_logp where a row's temperature is not 1 or a mask keeps some tokens only.
void BatchSampler::set_sampling_logprobs(std::span<const RowToSample> rows, const Tensor& logits,
                                         std::span<SampledToken> tokens) const {
  const auto count = std::ssize(rows);
  for (std::ptrdiff_t begin = 0, end = 0; begin < count; begin = end) {
    const float inverse = rows[begin].inverse_temperature;
    std::vector<std::int32_t> ids;
    IdSets masks;
    for (; end < count && rows[end].inverse_temperature == inverse; ++end) {
      ids.push_back(tokens[end].id);
      masks.push_back(tokens[end].mask);
    }
    if (inverse == 1.0F && masks.all_whole()) continue;
    const nn::TokenScores part =
        decoder_.head().scores(logits.rows(begin, end), {ids, inverse, precision_, &masks});
    const std::vector<float> logp = ops::to_host(decoder_.device(), part.logp);
    for (std::ptrdiff_t i = begin; i < end; ++i) tokens[i].sampling_logp = logp[i - begin];
  }
}

}  // namespace troupe::engine::generate
