#include "engine/generate/prompt_scores.h"

#include <algorithm>
#include <span>

#include "engine/base/text/text.h"
#include "engine/generate/fast_sample.h"
#include "engine/generate/host_logits.h"
#include "engine/generate/last_stage.h"
#include "engine/nn/lora_rows.h"

namespace troupe::engine::generate {

/// Scores the tokens first + 1 .. first + M of the prompt. hidden [M, D].
void PromptScorer::score_block(const Request& request, std::size_t first, const Tensor& hidden,
                               PromptScores& out) const {
  const nn::Head& head = decoder_.head();
  const auto count = static_cast<std::size_t>(hidden.shape()[0]);
  const auto targets = std::span(request.prompt).subspan(first + 1, count);
  nn::LoraRows lora;
  lora.add(0, hidden.shape()[0], request.adapter.get());
  const Tensor logits = head.logits(hidden, precision_, packed_, &lora);
  const nn::TokenScores scores = head.scores(logits, {targets});
  std::ranges::copy(ops::to_host(decoder_.device(), scores.logp),
                    out.logp.begin() + static_cast<std::ptrdiff_t>(first) + 1);
  const std::vector<float> lse = ops::to_host(decoder_.device(), scores.lse);
  HostLogits(decoder_, logits).for_each([&](std::size_t i, std::span<const float> row) {
    const std::size_t token = first + 1 + i;
    if (first_nonfinite(row) >= 0) {
      throw Failure(
          Error{Errc::bad_input, cat("the model's logits for token ", token,
                                     " of the prompt are not finite; the weights are damaged")});
    }
    out.rank[token] = rank_of(row, targets[i]);
    if (request.prompt_alternatives > 0)
      out.top[token] = top_alternatives(row, lse[i], request.prompt_alternatives);
  });
}

void PromptScorer::score(const Request& request, const Part& part, const Tensor& hidden,
                         PromptScores& out) const {
  const std::size_t length = request.prompt.size();
  out.logp.resize(length);
  out.rank.resize(length);
  if (request.prompt_alternatives > 0) out.top.resize(length);
  const auto from = static_cast<std::size_t>(std::max(part.first, request.scored_from - 1));
  const std::size_t end = std::min(static_cast<std::size_t>(part.first + part.count), length - 1);
  if (from >= end) return;
  const LastStage last(decoder_, "the scores of a prompt");
  const std::size_t block = HostLogits::block_rows(decoder_.spec());
  const auto logp = last.values<float>([&] {
    for (std::size_t at = from; at < end; at += block) {
      const std::int64_t row = part.row + static_cast<std::int64_t>(at) - part.first;
      const auto count = static_cast<std::int64_t>(std::min(block, end - at));
      score_block(request, at, hidden.rows(row, row + count), out);
    }
    return std::vector<float>(out.logp.begin() + static_cast<std::ptrdiff_t>(from) + 1,
                              out.logp.begin() + static_cast<std::ptrdiff_t>(end) + 1);
  });
  std::ranges::copy(logp, out.logp.begin() + static_cast<std::ptrdiff_t>(from) + 1);
  if (decoder_.pp() == nullptr) return;
  const auto ranked = std::span(out.rank).subspan(from + 1, end - from);
  std::ranges::copy(
      last.values<std::int32_t>([&] { return std::vector(ranked.begin(), ranked.end()); }),
      ranked.begin());
  if (request.prompt_alternatives == 0) return;
  const auto scored = std::span(out.top).subspan(from + 1, end - from);
  const auto alternatives = last.values<Alternative>([&] {
    std::vector<Alternative> all;
    for (const auto& each : scored) all.insert(all.end(), each.begin(), each.end());
    return all;
  });
  const std::size_t each = alternatives.size() / scored.size();
  for (std::size_t i = 0; i < scored.size(); ++i) {
    const auto top = std::span(alternatives).subspan(i * each, each);
    scored[i].assign(top.begin(), top.end());
  }
}

}  // namespace troupe::engine::generate
