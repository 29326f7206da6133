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

/// A SampledToken without its alternatives, for messages.
struct TokenMessage {
  std::uint64_t sequence = 0, position = 0;
  std::int32_t id = 0;
  float logp = 0, sampling_logp = 0;
  std::uint32_t alternatives = 0;
};

std::vector<TokenMessage> messages_of(std::span<const SampledToken> tokens) {
  std::vector<TokenMessage> out;
  for (const SampledToken& each : tokens)
    out.push_back({each.sequence, each.position, each.id, each.logp, each.sampling_logp,
                   static_cast<std::uint32_t>(each.top.size())});
  return out;
}

std::vector<Alternative> alternatives_of(std::span<const SampledToken> tokens) {
  std::vector<Alternative> out;
  for (const SampledToken& each : tokens) out.insert(out.end(), each.top.begin(), each.top.end());
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
                                    std::span<const Alternative> alternatives) {
  std::vector<SampledToken> out;
  for (const TokenMessage& each : messages) {
    const auto top = alternatives.first(each.alternatives);
    out.push_back({each.sequence, each.position, each.id, each.logp, each.sampling_logp,
                   std::vector(top.begin(), top.end())});
    alternatives = alternatives.subspan(each.alternatives);
  }
  return out;
}

}  // namespace

std::vector<SampledToken> BatchSampler::sample(std::vector<RowToSample> rows,
                                               const Tensor& hidden) const {
  if (decoder_.pp() == nullptr) return sample_rows(std::move(rows), hidden);
  const bool with_top = std::ranges::any_of(
      rows, [](const RowToSample& each) { return each.request->has_alternatives(); });
  const LastStage last(decoder_, "the sampled tokens");
  std::vector<SampledToken> sampled;  // on the last stage
  const auto messages = last.values<TokenMessage>([&] {
    sampled = sample_rows(std::move(rows), hidden);
    return messages_of(sampled);
  });
  std::vector<Alternative> alternatives;
  if (with_top) alternatives = last.values<Alternative>([&] { return alternatives_of(sampled); });
  return tokens_of(messages, alternatives);
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
  decoder_.device().gather_rows(hidden, indices, last);
  return decoder_.head().logits(last, precision_, packed_, &lora);
}

void BatchSampler::sample_block(std::span<const RowToSample> rows, const Tensor& hidden,
                                std::vector<SampledToken>& out) const {
  ops::Device& device = decoder_.device();
  const nn::Head& head = decoder_.head();
  const Tensor logits = this->logits(rows, hidden);  // [M, V/tp]
  const HostLogits host(decoder_, logits);

  std::vector<std::int32_t> ids(rows.size());
  host.for_each([&](std::size_t i, std::span<const float> row) {
    const RowToSample& each = rows[i];
    try {
      require_finite_logits(row, *each.request, each.tokens.size());
      ids[i] = sample_token(row, each.context(), each.request->sample_id);
    } catch (const Failure& failure) {
      if (!each.drafted) throw RequestFailure(each.request->id, failure.error());
      ids[i] = SampledToken::no_token;
    }
  });
  std::vector<std::int32_t> scored = ids;
  std::ranges::replace(scored, SampledToken::no_token, 0);
  const nn::TokenScores scores = head.scores(logits, scored, 1.0F);
  const std::vector<float> logp = ops::to_host(device, scores.logp),
                           lse = ops::to_host(device, scores.lse);
  const std::vector<float> sampling_logp = sampling_logprobs(rows, logits, scored, logp);
  const std::size_t before = out.size();
  for (std::size_t i = 0; i < rows.size(); ++i)
    out.push_back({rows[i].sequence, rows[i].tokens.size(), ids[i], logp[i], sampling_logp[i], {}});
  const auto alternatives = [&](std::size_t i) { return rows[i].request->has_alternatives(); };
  if (std::ranges::none_of(std::views::iota(std::size_t{0}, rows.size()), alternatives)) return;
  host.for_each([&](std::size_t i, std::span<const float> row) {
    out[before + i].top = alternatives_in(row, lse[i], *rows[i].request);
  });
}

/// `logp`, replaced where a row's temperature is not 1.
std::vector<float> BatchSampler::sampling_logprobs(std::span<const RowToSample> rows,
                                                   const Tensor& logits,
                                                   std::span<const std::int32_t> ids,
                                                   std::vector<float> logp) const {
  const auto count = std::ssize(rows);
  for (std::ptrdiff_t begin = 0, end = 0; begin < count; begin = end) {
    const float inverse = rows[begin].inverse_temperature;
    while (end < count && rows[end].inverse_temperature == inverse) ++end;
    if (inverse == 1.0F) continue;
    const nn::TokenScores part =
        decoder_.head().scores(logits.rows(begin, end), ids.subspan(begin, end - begin), inverse);
    std::ranges::copy(ops::to_host(decoder_.device(), part.logp), logp.begin() + begin);
  }
  return logp;
}

}  // namespace troupe::engine::generate
