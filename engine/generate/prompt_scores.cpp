#include "engine/generate/prompt_scores.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/text.h"
#include "engine/generate/fast_sample.h"
#include "engine/generate/host_logits.h"
#include "engine/ops/phase.h"

namespace troupe::engine::generate {

namespace {

Tensor hidden_states(models::Decoder& decoder, ops::Precision precision,
                     std::span<const std::int32_t> tokens) {
  const auto length = static_cast<std::int32_t>(tokens.size());
  ops::Layout layout{{0, length}, {}};
  for (std::int32_t t = 0; t < length; ++t) layout.positions.push_back(t);
  const nn::ForwardContext pass{decoder.device(), layout, precision, nullptr, {}, nullptr};
  nn::Saved nothing = nn::Saved::nothing();
  return ops::in_phase(decoder.device(), "forward",
                       [&] { return decoder.forward(tokens, pass, nothing); });
}

/// Scores the tokens first .. first + targets.size(), of which hidden rows first - 1 .. predict
/// each.
void score_block(models::Decoder& decoder, ops::Precision precision, const Tensor& hidden,
                 std::size_t first, std::span<const std::int32_t> targets, int alternatives,
                 PromptScores& out) {
  const nn::Head& head = decoder.head();
  const auto begin = static_cast<std::int64_t>(first) - 1;
  const Tensor logits =
      head.logits(hidden.rows(begin, begin + std::ssize(targets)), precision, false);
  const nn::TokenScores scores = head.scores(logits, targets, 1.0F);
  std::ranges::copy(ops::to_host(decoder.device(), scores.logp),
                    out.logp.begin() + static_cast<std::ptrdiff_t>(first));
  const std::vector<float> lse = ops::to_host(decoder.device(), scores.lse);
  HostLogits(decoder, logits).for_each([&](std::size_t i, std::span<const float> row) {
    if (first_nonfinite(row) >= 0) {
      throw Failure(
          Error{Errc::bad_input, cat("the model's logits for token ", first + i,
                                     " of the prompt are not finite; the weights are damaged")});
    }
    if (alternatives > 0) out.top[first + i] = top_alternatives(row, lse[i], alternatives);
  });
}

}  // namespace

PromptScores score_prompt(models::Decoder& decoder, ops::Precision precision,
                          std::span<const std::int32_t> tokens, int alternatives) {
  check(!tokens.empty(), "score_prompt: an empty prompt");
  PromptScores out;
  out.logp.resize(tokens.size());
  if (alternatives > 0) out.top.resize(tokens.size());
  const Tensor hidden = hidden_states(decoder, precision, tokens);
  const std::size_t block = HostLogits::block_rows(decoder.spec());
  for (std::size_t first = 1; first < tokens.size(); first += block) {
    const std::size_t count = std::min(block, tokens.size() - first);
    score_block(decoder, precision, hidden, first, tokens.subspan(first, count), alternatives, out);
  }
  return out;
}

}  // namespace troupe::engine::generate
