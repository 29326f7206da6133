#include "engine/generate/prompt_scores.h"

#include <algorithm>
#include <span>

#include "engine/base/text.h"
#include "engine/generate/fast_sample.h"
#include "engine/generate/host_logits.h"
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
  const nn::TokenScores scores = head.scores(logits, targets, 1.0F);
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
    if (request.prompt_alternatives > 0)
      out.top[token] = top_alternatives(row, lse[i], request.prompt_alternatives);
  });
}

void PromptScorer::score(const Request& request, std::int32_t first, const Tensor& hidden,
                         PromptScores& out) const {
  const std::size_t length = request.prompt.size();
  out.logp.resize(length);
  if (request.prompt_alternatives > 0) out.top.resize(length);
  const auto from = static_cast<std::size_t>(first);
  const std::size_t end = std::min(from + static_cast<std::size_t>(hidden.shape()[0]), length - 1);
  const std::size_t block = HostLogits::block_rows(decoder_.spec());
  for (std::size_t at = from; at < end; at += block) {
    const auto row = static_cast<std::int64_t>(at - from);
    const auto count = static_cast<std::int64_t>(std::min(block, end - at));
    score_block(request, at, hidden.rows(row, row + count), out);
  }
}

}  // namespace troupe::engine::generate
