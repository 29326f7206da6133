#include "algorithms/losses/loss_average.h"

#include <numeric>
#include <vector>

#include "engine/base/text/text.h"

namespace troupe::algorithms {

std::string LossAverage::formula() const {
  if (mean == LossMean::tokens) return "";
  return cat("averaged: over the trained tokens of each micro-batch of ", micro_batch_rows,
             micro_batch_rows == 1 ? " row" : " rows",
             ", then over the micro-batches of the batch\n");
}

void LossAverage::apply(engine::data::Experience& batch, bool of_samples) const {
  if (mean == LossMean::tokens || batch.sequences() == 0) return;
  const auto sequences = static_cast<std::size_t>(batch.sequences());
  // Micro-batches as ranges of tokens.
  std::vector<std::int32_t> bounds{0};
  std::int64_t rows = 0;
  for (std::size_t n = 0; n < sequences; ++n) {
    const bool begins = n == 0 || !of_samples || batch.sample_id[n] != batch.sample_id[n - 1];
    if (!begins) continue;
    if (rows > 0 && rows % micro_batch_rows == 0) bounds.push_back(batch.offsets[n]);
    ++rows;
  }
  bounds.push_back(batch.token_count());
  const auto parts = static_cast<double>(bounds.size() - 1);
  for (std::size_t m = 0; m + 1 < bounds.size(); ++m) {
    const auto begin = batch.mask.begin() + bounds[m], end = batch.mask.begin() + bounds[m + 1];
    const double weight = std::accumulate(begin, end, 0.0);
    if (weight == 0) continue;
    const double factor = batch.count / (parts * weight);
    for (auto value = begin; value != end; ++value) *value = static_cast<float>(*value * factor);
  }
}

}  // namespace troupe::algorithms
