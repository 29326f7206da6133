#include "algorithms/held_out.h"

#include <algorithm>
#include <cmath>
#include "algorithms/catalog.h"
#include "engine/base/errors/check.h"

namespace troupe::algorithms {

EvalMetrics::EvalMetrics(const engine::loss::LossSpec& loss)
    : loss_(value_or_throw(engine::loss::make_loss(losses(), loss))) {
  check(!loss_.needs().collision && !(loss_.needs().scores && loss_.needs().logp),
        "EvalMetrics: a loss that reads more than one thing");
}

void EvalMetrics::add(const engine::data::Experience& batch, const std::vector<float>& logp) {
  sum_ +=
      engine::loss::value_and_grads(loss_, {logp, {}, {}, {}}, batch, report_).loss * batch.count;
  count_ += batch.count;
}

void EvalMetrics::add_scores(const engine::data::Experience& batch,
                             const std::vector<float>& scores) {
  const std::size_t tokens = batch.tokens.size();
  check(tokens > 0 && scores.size() % tokens == 0, "EvalMetrics: [T, C] scores are needed");
  std::vector<std::vector<float>> columns(scores.size() / tokens);
  for (std::size_t i = 0; i < scores.size(); ++i) columns[i % columns.size()].push_back(scores[i]);
  sum_ +=
      engine::loss::value_and_grads(loss_, {{}, {}, {}, std::move(columns)}, batch, report_).loss *
      batch.count;
  count_ += batch.count;
}

Metrics EvalMetrics::metrics() const {
  Metrics out{{"eval/loss", count_ == 0 ? 0 : sum_ / count_}};
  for (const auto& [name, value] : report_.values()) out.emplace_back("eval/" + name, value);
  return out;
}

Calibration calibration(std::span<const double> margins, int bins) {
  check(bins > 0 && !margins.empty(), "calibration: one bin and one pair at least");
  Calibration out;
  for (int i = 0; i < bins; ++i)
    out.bins.push_back({0.5 + 0.5 * i / bins, 0.5 + 0.5 * (i + 1) / bins});
  for (const double margin : margins) {
    const double confidence = 1 / (1 + std::exp(-std::abs(margin)));
    const auto index = static_cast<std::size_t>(
        std::min(static_cast<double>(bins) - 1, std::floor((confidence - 0.5) * 2 * bins)));
    ConfidenceBin& bin = out.bins[index];
    ++bin.pairs;
    bin.confidence += confidence;
    bin.accuracy += margin > 0;
    out.accuracy += margin > 0;
  }
  const auto all = static_cast<double>(margins.size());
  out.accuracy /= all;
  for (ConfidenceBin& bin : out.bins) {
    if (bin.pairs == 0) continue;
    const auto count = static_cast<double>(bin.pairs);
    bin.confidence /= count;
    bin.accuracy /= count;
    out.error += count / all * std::abs(bin.accuracy - bin.confidence);
  }
  return out;
}

}  // namespace troupe::algorithms
