#include "algorithms/losses/pairs.h"

#include <algorithm>

#include "engine/base/text/text.h"

namespace troupe::algorithms {

using namespace engine::loss;

namespace {

// The mask of the chosen sequences; 0 for the rejected ones.
std::vector<float> of_chosen(const engine::data::Experience& b) {
  std::vector<float> weight = b.mask;
  for (std::size_t n = 1; n + 1 < b.offsets.size(); n += 2)
    std::fill(weight.begin() + b.offsets[n], weight.begin() + b.offsets[n + 1], 0.0f);
  return weight;
}

}  // namespace

Two split(const Expr& by_sequence) {
  return {chosen(by_sequence), rejected(by_sequence)};
}

Expr weighted_sum(const Expr& x, const std::vector<float>& weight,
                  const std::vector<std::int32_t>& offsets) {
  return sum_by_sequence(where(weight, x, 0.0) * weight, offsets);
}

Expr weight_of(const std::vector<float>& weight, const std::vector<std::int32_t>& offsets) {
  return max(sum_by_sequence(weight, offsets), 1.0);
}

Expr smoothed(const Expr& margin, double wrong) {
  const Expr right = -log_sigmoid(margin);
  return wrong == 0 ? right : (1 - wrong) * right - wrong * log_sigmoid(-margin);
}

Expr nll_of_chosen(const Expr& logp, const engine::data::Experience& b, NllMean average,
                   Report& report) {
  const auto weight = of_chosen(b);
  const Expr nll = where(weight, -logp, 0.0);
  if (average == NllMean::token) {
    report.mean("nll_loss", nll, weight);
    return sum(nll * weight) / b.scale;
  }
  const Expr each = chosen(weighted_sum(nll, weight, b.offsets) / weight_of(weight, b.offsets));
  report.mean("nll_loss", each);
  return sum(each) / b.count;
}

std::string nll_formula(double weight, NllMean mean) {
  if (weight == 0) return "";
  const char* over = mean == NllMean::token ? "the chosen answers' tokens"
                                            : "the chosen answers, each by its tokens' mean,";
  return cat(" + ", weight == 1 ? std::string() : to_text(weight) + " ", "mean over ", over,
             " of - log p");
}

void set_nll_tokens(engine::data::Experience& b) {
  double tokens = 0;
  for (const float weight : of_chosen(b)) tokens += static_cast<double>(weight);
  b.scale = std::max(tokens, 1.0);
}

void report_pairs(Report& report, const Two& reward, const Two& logp) {
  report.mean("rewards/chosen", reward.chosen);
  report.mean("rewards/rejected", reward.rejected);
  report.mean("rewards/margins", reward.chosen - reward.rejected);
  report.mean("rewards/accuracies", reward.chosen > reward.rejected);
  report.mean("logps/chosen", logp.chosen);
  report.mean("logps/rejected", logp.rejected);
}

}  // namespace troupe::algorithms
