#include "algorithms/losses/prm_loss.h"

#include <algorithm>
#include <set>

#include "engine/base/check.h"
#include "engine/base/text.h"

namespace troupe::algorithms {

using namespace engine::loss;

static_assert(Loss<PrmLoss>);

namespace {

// [T] 1 where a token is judged.
std::vector<double> judged(const engine::data::Experience& b) {
  std::vector<double> out(b.tokens.size());
  for (std::size_t t = 0; t < out.size(); ++t) out[t] = b.mask[t] != 0 && b.classes[t] >= 0 ? 1 : 0;
  return out;
}

std::vector<double> has_class(const engine::data::Experience& b, std::int32_t wanted) {
  std::vector<double> out(b.tokens.size());
  for (std::size_t t = 0; t < out.size(); ++t) out[t] = b.classes[t] == wanted ? 1 : 0;
  return out;
}

}  // namespace

Result<> PrmLoss::validate() const {
  if (std::set(reward_tokens.begin(), reward_tokens.end()).size() != reward_tokens.size())
    return fail(Errc::usage, "prm.reward_tokens: expected different tokens, found one twice");
  if (reward_tokens.size() == 1)
    return fail(Errc::usage, "prm.reward_tokens: expected two or more (the first means a right step), found one");
  if (whole_vocabulary && reward_tokens.empty())
    return fail(Errc::usage, "prm.whole_vocabulary: a score head has no vocabulary; it goes with prm.reward_tokens");
  return {};
}

Expr PrmLoss::operator()(const TokenStats& now, const engine::data::Experience& b, Report& report) const {
  check(now.scores.size() >= 2, "PrmLoss: scores of two classes or more are needed");
  check(b.classes.size() == b.tokens.size(), "PrmLoss: classes are missing");
  const Expr weight = judged(b);
  std::vector<Expr> scores;
  for (const Expr& column : now.scores) scores.push_back(where(weight, column, 0.0));
  Expr right = 0.0, greatest = detach(scores[0]), normaliser = 0.0;
  for (const Expr& score : scores) greatest = max(greatest, detach(score));
  for (std::size_t c = 0; c < scores.size(); ++c) {
    right = right + Expr(has_class(b, static_cast<std::int32_t>(c))) * scores[c];
    normaliser = normaliser + exp(scores[c] - greatest);
  }
  report.mean("accuracy", 1.0 - (greatest > detach(right)), weight);
  // The candidates' numbers are log-probabilities over the whole vocabulary already.
  const Expr log_p = whole_vocabulary ? right : right - greatest - log(normaliser);
  return -sum(where(weight, log_p, 0.0)) / b.count;
}

}  // namespace troupe::algorithms
