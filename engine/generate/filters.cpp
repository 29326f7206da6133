// The filters of the sampling chain: what is too unlikely to be drawn.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "engine/generate/rules.h"

namespace troupe::engine::generate {

namespace rules {

namespace {

/// Keeps the ids whose place i in row.kept passes.
template <class Passes>
void keep_where(Row& row, Passes passes) {
  std::size_t to = 0;
  for (std::size_t i = 0; i < row.kept.size(); ++i) {
    if (passes(i)) row.kept[to++] = row.kept[i];
  }
  row.kept.resize(to);
}

/// Sorts places by falling weight; equals stay in their order, so that it never depends on the
/// library's sort.
void sort_by_falling(std::vector<std::size_t>& places, const std::vector<double>& weight) {
  std::stable_sort(places.begin(), places.end(),
                   [&](std::size_t a, std::size_t b) { return weight[a] > weight[b]; });
}

/// In nats.
double entropy(const std::vector<double>& p) {
  double sum = 0;
  for (const double x : p) sum -= x > 0 ? x * std::log(x) : 0;
  return sum;
}

/// Keeps what has at least this probability, and the most likely.
void keep_above(Row& row, const std::vector<double>& p, double least) {
  const double most = *std::max_element(p.begin(), p.end());
  keep_where(row, [&](std::size_t i) { return p[i] >= least || p[i] == most; });
}

}  // namespace

std::vector<double> probabilities(const Row& row) {
  double top = -std::numeric_limits<double>::infinity();
  for (const std::int32_t id : row.kept) top = std::max(top, row.score[id]);
  std::vector<double> p(row.kept.size());
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += p[i] = std::exp(row.score[row.kept[i]] - top);
  for (double& x : p) x /= sum;
  return p;
}

void temperature(Row& row, const Context& context) {
  if (context.params.temperature == 1) return;
  for (const std::int32_t id : row.kept) row.score[id] /= context.params.temperature;
}

void top_h(Row& row, const Context& context) {
  if (context.params.top_h <= 0) return;
  constexpr std::size_t considered = 100;  // transformers' top_n
  std::vector<double> scores;
  scores.reserve(row.kept.size());
  for (const std::int32_t id : row.kept) scores.push_back(row.score[id]);
  std::vector<std::size_t> order(row.kept.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  sort_by_falling(order, scores);
  order.resize(std::min(order.size(), considered));
  Row top{row.score, {}};
  for (const std::size_t place : order) top.kept.push_back(row.kept[place]);
  const std::vector<double> p = probabilities(top);
  const double wanted = context.params.top_h * entropy(p);
  std::size_t count = 0;  // the first always stays
  for (double sum = 0; count < p.size(); ++count) {
    sum += p[count] > 0 ? -p[count] * std::log(p[count]) : 0;
    if (sum > wanted && count > 0) break;
  }
  top.kept.resize(count);
  std::sort(top.kept.begin(), top.kept.end());
  row.kept = std::move(top.kept);
}

void top_k(Row& row, const Context& context) {
  const auto k = static_cast<std::size_t>(context.params.top_k);
  if (k == 0 || k >= row.kept.size()) return;
  std::vector<double> scores;
  scores.reserve(row.kept.size());
  for (const std::int32_t id : row.kept) scores.push_back(row.score[id]);
  std::nth_element(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(k - 1),
                   scores.end(), std::greater<>());
  const double least = scores[k - 1];
  keep_where(row, [&](std::size_t i) { return row.score[row.kept[i]] >= least; });
}

void top_p(Row& row, const Context& context) {
  if (context.params.top_p >= 1) return;
  const double droppable = 1 - context.params.top_p;
  const std::vector<double> p = probabilities(row);
  // transformers drops, from the least likely up, while the dropped mass is at most 1 - top_p; the
  // most likely token always stays. Tokens so rare that all of them together stay below that mass
  // need no sorting: of a large vocabulary that is nearly everything.
  const double rare = 0.5 * droppable / static_cast<double>(p.size());
  std::vector<char> drop(p.size(), 0);
  std::vector<std::size_t> candidates;
  double mass = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] < rare) {
      drop[i] = 1;
      mass += p[i];
    } else {
      candidates.push_back(i);
    }
  }
  sort_by_falling(candidates, p);
  for (std::size_t i = candidates.size(); i-- > 1;) {
    mass += p[candidates[i]];
    if (mass > droppable) break;
    drop[candidates[i]] = 1;
  }
  keep_where(row, [&](std::size_t i) { return !drop[i]; });
}

void min_p(Row& row, const Context& context) {
  if (context.params.min_p <= 0) return;
  const std::vector<double> p = probabilities(row);
  const double least = context.params.min_p * *std::max_element(p.begin(), p.end());
  keep_where(row, [&](std::size_t i) { return p[i] >= least; });
}

void typical(Row& row, const Context& context) {
  if (context.params.typical_p >= 1) return;
  const std::vector<double> p = probabilities(row);
  const double surprise = entropy(p);
  std::vector<double> closeness(
      p.size());  // the nearer a token's surprise is to the entropy, the larger
  for (std::size_t i = 0; i < p.size(); ++i) closeness[i] = -std::abs(-std::log(p[i]) - surprise);
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  sort_by_falling(order, closeness);
  std::size_t last = 0;  // the token with which the mass reaches typical_p
  for (double mass = p[order[0]]; mass < context.params.typical_p && last + 1 < order.size();
       mass += p[order[last]])
    ++last;
  const double least = closeness[order[last]];
  keep_where(row, [&](std::size_t i) { return closeness[i] >= least; });
}

void epsilon(Row& row, const Context& context) {
  if (context.params.epsilon_cutoff > 0)
    keep_above(row, probabilities(row), context.params.epsilon_cutoff);
}

void eta(Row& row, const Context& context) {
  const double cutoff = context.params.eta_cutoff;
  if (cutoff <= 0) return;
  const std::vector<double> p = probabilities(row);
  keep_above(row, p, std::min(cutoff, std::sqrt(cutoff) * std::exp(-entropy(p))));
}

}  // namespace rules

std::span<const Step> filters() {
  static constexpr std::array<Step, 8> chain = {rules::temperature, rules::top_h, rules::top_k,
                                                rules::top_p,       rules::min_p, rules::typical,
                                                rules::epsilon,     rules::eta};
  return chain;
}

}  // namespace troupe::engine::generate
