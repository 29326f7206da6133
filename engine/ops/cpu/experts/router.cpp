#include "engine/ops/cpu/experts/router.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::engine::ops::cpu {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

// The index of the largest value, the first one of equal ones.
std::int32_t first_largest(std::span<const float> values) {
  return static_cast<std::int32_t>(std::ranges::max_element(values) - values.begin());
}

// Softmax of the logits that `counts` accepts; 0 for the others.
template <class Counts>
void softmax(std::span<const float> logits, std::vector<double>& scores, const Counts& counts) {
  double largest = static_cast<double>(minus_infinity), sum = 0;
  for (std::size_t e = 0; e < logits.size(); ++e)
    if (counts(e)) largest = std::max(largest, static_cast<double>(logits[e]));
  for (std::size_t e = 0; e < logits.size(); ++e)
    sum += scores[e] = counts(e) ? std::exp(static_cast<double>(logits[e]) - largest) : 0;
  for (double& score : scores) score /= sum;
}

// Scores of all experts; for the sparse mixer those of the pick of `picked`, where `before` was
// picked (-1: none).
void score_all(const Router& how, std::span<const float> logits, std::int32_t picked,
               std::int32_t before, std::vector<double>& scores) {
  scores.resize(logits.size());
  if (how.score == RouterScore::softmax)
    return softmax(logits, scores, [](std::size_t) { return true; });
  if (how.score == RouterScore::sigmoid) {
    for (std::size_t e = 0; e < logits.size(); ++e)
      scores[e] = 1 / (1 + std::exp(-static_cast<double>(logits[e])));
    return;
  }
  const auto largest = static_cast<double>(logits[at(picked)]);
  softmax(logits, scores, [&](std::size_t e) {
    const auto logit = static_cast<double>(logits[e]);
    const bool far = (largest - logit) / std::max(std::abs(logit), largest) > 2 * how.jitter;
    return !far && static_cast<std::int32_t>(e) != before;
  });
}

float group_score(const Router& how, std::span<const float> values) {
  float first = minus_infinity, second = minus_infinity;
  for (const float value : values) {
    second = std::max(second, std::min(first, value));
    first = std::max(first, value);
  }
  return how.group_score == GroupScore::largest || values.size() < 2 ? first : first + second;
}

void mask_groups(const Router& how, std::span<float> choice) {
  if (how.kept_groups >= how.groups) return;
  const std::int64_t size = how.experts / how.groups;
  std::vector<float> scores;
  for (std::int64_t g = 0; g < how.groups; ++g)
    scores.push_back(group_score(how, choice.subspan(at(g * size), at(size))));
  std::vector<bool> kept(at(how.groups), false);
  for (std::int64_t i = 0; i < how.kept_groups; ++i) {
    std::int64_t best = -1;
    for (std::int64_t g = 0; g < how.groups; ++g)
      if (!kept[at(g)] && (best < 0 || scores[at(g)] > scores[at(best)])) best = g;
    kept[at(best)] = true;
  }
  for (std::int64_t e = 0; e < how.experts; ++e)
    if (!kept[at(e / size)]) choice[at(e)] = how.group_mask;
}

// The k largest choice values, ascending by index.
void choose(std::span<const float> choice, std::span<std::int32_t> experts) {
  std::size_t count = 0;
  const auto better = [&](std::int32_t a, std::int32_t b) {
    return choice[at(a)] > choice[at(b)] || (choice[at(a)] == choice[at(b)] && a < b);
  };
  for (std::int32_t e = 0; e < static_cast<std::int32_t>(choice.size()); ++e) {
    if (count == experts.size() && !better(e, experts[count - 1])) continue;
    std::size_t i = count < experts.size() ? count++ : count - 1;
    for (; i > 0 && better(e, experts[i - 1]); --i) experts[i] = experts[i - 1];
    experts[i] = e;
  }
  std::ranges::sort(experts);
}

// Divisor of the scores of the chosen experts.
double divisor(const Router& how, double sum) {
  if (how.renormalize == Renormalize::no) return 1;
  return how.renormalize == Renormalize::sum ? sum + how.epsilon : std::max(sum, how.epsilon);
}

void pick_two(const Router& how, std::span<const float> logits, std::span<std::int32_t> experts,
              std::span<float> weights, RouterScratch& scratch) {
  scratch.choice.assign(logits.begin(), logits.end());
  std::int32_t before = -1;
  for (std::size_t i = 0; i < experts.size(); ++i) {
    experts[i] = first_largest(scratch.choice);
    score_all(how, logits, experts[i], before, scratch.scores);
    weights[i] = static_cast<float>(scratch.scores[at(experts[i])] * how.scale);
    scratch.choice[at(experts[i])] = minus_infinity;
    before = experts[i];
  }
  if (experts[0] < experts[1]) return;
  std::swap(experts[0], experts[1]);
  std::swap(weights[0], weights[1]);
}

void pick_two_backward(const Router& how, std::span<const float> logits,
                       std::span<const std::int32_t> experts, std::span<const float> dweights,
                       std::span<float> dlogits, std::vector<double>& scores) {
  const std::size_t first = logits[at(experts[0])] >= logits[at(experts[1])] ? 0 : 1;
  std::vector<double> sums(logits.size(), 0.0);
  for (const std::size_t i : {first, 1 - first}) {
    score_all(how, logits, experts[i], i == first ? -1 : experts[first], scores);
    const double own = scores[at(experts[i])],
                 above = static_cast<double>(dweights[i]) * how.scale * own;
    for (std::size_t e = 0; e < sums.size(); ++e) sums[e] -= above * scores[e];
    sums[at(experts[i])] += above;
  }
  std::ranges::transform(sums, dlogits.begin(), [](double x) { return static_cast<float>(x); });
}

}  // namespace

void route_token(const Router& how, std::span<const float> logits, std::span<const float> bias,
                 std::span<std::int32_t> experts, std::span<float> weights,
                 RouterScratch& scratch) {
  if (how.score == RouterScore::sparse_mixer)
    return pick_two(how, logits, experts, weights, scratch);
  auto& [scores, choice] = scratch;
  score_all(how, logits, -1, -1, scores);
  choice.resize(logits.size());
  for (std::size_t e = 0; e < choice.size(); ++e)
    choice[e] = (how.chooses_logits ? logits[e] : static_cast<float>(scores[e])) +
                (bias.empty() ? 0.0F : bias[e]);
  mask_groups(how, choice);
  choose(choice, experts);
  double sum = 0;
  for (const std::int32_t e : experts) sum += scores[at(e)];
  const double factor = how.scale / divisor(how, sum);
  for (std::size_t i = 0; i < experts.size(); ++i)
    weights[i] = static_cast<float>(scores[at(experts[i])] * factor);
}

// d(loss)/d(score) is 0 for experts that are not chosen.
void route_token_backward(const Router& how, std::span<const float> logits,
                          std::span<const std::int32_t> experts, std::span<const float> dweights,
                          std::span<float> dlogits, RouterScratch& scratch) {
  std::vector<double>& scores = scratch.scores;
  std::ranges::fill(dlogits, 0.0F);
  if (how.score == RouterScore::sparse_mixer)
    return pick_two_backward(how, logits, experts, dweights, dlogits, scores);
  score_all(how, logits, -1, -1, scores);
  double sum = 0, dot = 0;
  for (std::size_t i = 0; i < experts.size(); ++i) {
    sum += scores[at(experts[i])];
    dot += scores[at(experts[i])] * static_cast<double>(dweights[i]);
  }
  const double by = divisor(how, sum);
  const bool fixed = how.renormalize == Renormalize::no ||
                     (how.renormalize == Renormalize::bounded_sum && sum < how.epsilon);
  const auto dscore = [&](std::size_t i) {
    return how.scale / by * (static_cast<double>(dweights[i]) - (fixed ? 0 : dot / by));
  };
  double mean = 0;  // sum over all experts of score * dscore
  for (std::size_t i = 0; i < experts.size(); ++i) mean += scores[at(experts[i])] * dscore(i);
  const bool softmax = how.score == RouterScore::softmax;
  if (softmax)
    for (std::size_t e = 0; e < dlogits.size(); ++e)
      dlogits[e] = static_cast<float>(-scores[e] * mean);
  for (std::size_t i = 0; i < experts.size(); ++i) {
    const double score = scores[at(experts[i])];
    dlogits[at(experts[i])] =
        static_cast<float>(softmax ? score * (dscore(i) - mean) : score * (1 - score) * dscore(i));
  }
}

double shares_of_token(const Router& how, std::span<const float> logits,
                       std::vector<double>& shares) {
  const auto largest = static_cast<double>(*std::ranges::max_element(logits));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  shares.resize(logits.size());
  if (how.score != RouterScore::sigmoid) {
    for (std::size_t e = 0; e < logits.size(); ++e)
      shares[e] = std::exp(static_cast<double>(logits[e]) - largest) / sum;
  } else {
    score_all(how, logits, -1, -1, shares);
    double scores = 1e-20;  // Megatron-LM's
    for (const double score : shares) scores += score;
    for (double& share : shares) share /= scores;
  }
  return largest + std::log(sum);
}

void favourites_of_token(std::span<const float> logits, std::span<std::int32_t> experts) {
  choose(logits, experts);
}

}  // namespace troupe::engine::ops::cpu
