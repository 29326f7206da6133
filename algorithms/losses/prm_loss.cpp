#include "algorithms/losses/prm_loss.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {

using namespace engine::loss;

static_assert(Loss<PrmLoss>);

namespace {

// [T] 1 where a token has a class.
std::vector<double> labeled(const engine::data::Experience& b) {
  std::vector<double> out(b.tokens.size());
  for (std::size_t t = 0; t < out.size(); ++t) out[t] = b.mask[t] != 0 && b.classes[t] >= 0 ? 1 : 0;
  return out;
}

std::vector<double> has_class(const engine::data::Experience& b, std::int32_t wanted) {
  std::vector<double> out(b.tokens.size());
  for (std::size_t t = 0; t < out.size(); ++t) out[t] = b.classes[t] == wanted ? 1 : 0;
  return out;
}

// L / count with torch's cross-entropy of float32 logits: log-softmax, then gradients softmax - [c
// = class], each number rounded to float32.
Expr float32_cross_entropy(const std::vector<Expr>& scores, const std::vector<double>& weight,
                           const engine::data::Experience& b) {
  const float share = 1.0f / static_cast<float>(b.count);
  std::vector<std::vector<double>> values,
      grads(scores.size(), std::vector<double>(weight.size(), 0));
  for (const Expr& column : scores) values.push_back(column.values());
  std::vector<float> x(scores.size());
  double loss = 0;
  for (std::size_t t = 0; t < weight.size(); ++t) {
    if (weight[t] == 0) continue;
    for (std::size_t c = 0; c < x.size(); ++c) x[c] = static_cast<float>(values[c][t]);
    const float greatest = *std::max_element(x.begin(), x.end());
    float normaliser = 0;
    for (float& score : x) {
      score -= greatest;
      normaliser += std::exp(score);
    }
    normaliser = std::log(normaliser);
    for (std::size_t c = 0; c < x.size(); ++c) {
      const bool right = b.classes[t] == static_cast<std::int32_t>(c);
      const float log_p = x[c] - normaliser;
      grads[c][t] = share * (std::exp(log_p) - (right ? 1.0f : 0.0f));
      if (right) loss -= static_cast<double>(log_p) / b.count;
    }
  }
  Expr linear = 0.0;
  for (std::size_t c = 0; c < scores.size(); ++c) linear = linear + sum(Expr(grads[c]) * scores[c]);
  return loss + (linear - detach(linear));
}

}  // namespace

Result<> PrmLoss::validate() const {
  if (std::set(reward_tokens.begin(), reward_tokens.end()).size() != reward_tokens.size())
    return fail(Errc::usage, "prm.reward_tokens: expected different tokens, found one twice");
  if (reward_tokens.size() == 1)
    return fail(
        Errc::usage,
        "prm.reward_tokens: expected two or more (the first means a right step), found one");
  if (whole_vocabulary && reward_tokens.empty())
    return fail(
        Errc::usage,
        "prm.whole_vocabulary: a score head has no vocabulary; it goes with prm.reward_tokens");
  if (whole_vocabulary && float32)
    return fail(Errc::usage,
                "prm.float32: rounds the softmax of the scores, and prm.whole_vocabulary takes the "
                "language head's own");
  return {};
}

Expr PrmLoss::operator()(const TokenStats& now, const engine::data::Experience& b,
                         Report& report) const {
  check(now.scores.size() >= 2, "PrmLoss: scores of two classes or more are needed");
  check(b.classes.size() == b.tokens.size(), "PrmLoss: classes are missing");
  const std::vector<double> labeled_tokens = labeled(b);
  const Expr weight = labeled_tokens;
  std::vector<Expr> scores;
  for (const Expr& column : now.scores) scores.push_back(where(weight, column, 0.0));
  Expr right = 0.0, greatest = detach(scores[0]), normaliser = 0.0;
  for (const Expr& score : scores) greatest = max(greatest, detach(score));
  for (std::size_t c = 0; c < scores.size(); ++c) {
    right = right + Expr(has_class(b, static_cast<std::int32_t>(c))) * scores[c];
    normaliser = normaliser + exp(scores[c] - greatest);
  }
  report.mean("accuracy", 1.0 - (greatest > detach(right)), weight);
  if (float32) return float32_cross_entropy(scores, labeled_tokens, b);
  // Scores of candidates are log-probabilities over the whole vocabulary already.
  const Expr log_p = whole_vocabulary ? right : right - greatest - log(normaliser);
  return -sum(where(weight, log_p, 0.0)) / b.count;
}

}  // namespace troupe::algorithms
