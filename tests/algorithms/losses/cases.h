// Batches for tests of losses, and the value and derivatives of a loss on them.
#pragma once

#include <vector>

#include "engine/base/random/random.h"
#include "engine/loss/loss.h"

namespace troupe::test {

using engine::data::Experience;
using engine::loss::AnyLoss;
using engine::loss::Expr;
using engine::loss::Report;

inline double draw(std::uint64_t stream, std::size_t i, double low, double high) {
  return low + (high - low) * uniform(23, stream, i);
}

/// Six sequences (three pairs) of different lengths with prompts that are not trained on; one
/// sequence has no trained token.
inline Experience ragged_batch() {
  Experience b;
  const std::vector<std::pair<std::size_t, std::size_t>> prompt_and_answer{{2, 5}, {2, 3}, {1, 4},
                                                                           {1, 6}, {3, 0}, {3, 2}};
  for (const auto& [prompt, answer] : prompt_and_answer) {
    std::vector<float> mask(prompt + answer, 1);
    for (std::size_t t = 0; t < prompt; ++t) mask[t] = 0;
    b.append(std::vector<std::int32_t>(prompt + answer, 7), mask);
  }
  b.sequences_per_group = 2;
  for (std::size_t t = 0; t < b.tokens.size(); ++t) {
    b.old_logp.push_back(static_cast<float>(draw(1, t, -2, -0.2)));
    b.reference_logp.push_back(static_cast<float>(draw(2, t, -2, -0.2)));
    b.advantage.push_back(static_cast<float>(draw(3, t, -1.5, 1.5)));
  }
  return b;
}

/// Whether a trainer accepts the loss's settings, as they come in a message.
template <engine::loss::Loss L>
Result<> accepted(const L& loss) {
  const auto made = engine::loss::entry<L>().second(fields_to_json(loss));
  if (!made) return fail(made.error().code, made.error().what);
  return {};
}

struct Sloped {
  double loss = 0;
  std::vector<double> dlogp, dentropy;
};

inline Sloped slopes_of(const AnyLoss& loss, const std::vector<double>& logp,
                        const std::vector<double>& entropy, const Experience& b, Report& report) {
  const std::vector<Expr> leaves{engine::loss::variable(logp), engine::loss::variable(entropy)};
  std::vector<double> collision;
  for (std::size_t t = 0; t < logp.size(); ++t)
    collision.push_back(-0.3 - 0.1 * static_cast<double>(b.tokens[t] % 5));
  const Expr scalar = loss(
      {.logp = leaves[0], .entropy = leaves[1], .collision = collision, .scores = {}}, b, report);
  const auto derivatives = gradients(scalar, leaves);
  return {scalar.value(), derivatives[0], derivatives[1]};
}

inline std::vector<double> part(const std::vector<double>& all, std::int32_t begin,
                                std::int32_t end) {
  return {all.begin() + begin, all.begin() + end};
}

/// The table's packed rows [[...], [...]] as sequences whose first token is a prompt's.
inline std::vector<double> with_prompt_token(const std::vector<std::vector<double>>& rows) {
  std::vector<double> out;
  for (const auto& row : rows) {
    out.push_back(0);
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

inline std::vector<float> to_floats(const std::vector<double>& values) {
  std::vector<float> out;
  for (const double v : values) out.push_back(static_cast<float>(v));
  return out;
}

/// The policy-gradient table of the reference (two samples, seven trained tokens). Its decimals are
/// in float64, an Experience's columns in float32: the difference that a loss reads is put into
/// logp in float64, so that exact ratios are tested.
struct PublishedTokens {
  Experience b;
  std::vector<double> logp;
  PublishedTokens() {
    b.append({1, 2, 3, 4, 5}, {0, 1, 1, 1, 1});
    b.append({1, 2, 3, 4}, {0, 1, 1, 1});
    b.old_logp = to_floats(with_prompt_token({{-1.2, -.5, -1.5, -.9}, {-.6, -1.2, -.9}}));
    const auto difference = with_prompt_token({{.2, 0, -.5, .2}, {.4, -.3, 0}});
    for (std::size_t t = 0; t < b.tokens.size(); ++t)
      logp.push_back(static_cast<double>(b.old_logp[t]) + difference[t]);
    b.advantage = {1, 1, 1, 1, 1, -.5f, -.5f, -.5f, -.5f};
  }
};

}  // namespace troupe::test
