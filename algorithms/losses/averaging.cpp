#include "algorithms/losses/averaging.h"

#include <numeric>

#include "engine/base/errors/check.h"

namespace troupe::algorithms {

using namespace engine::loss;

namespace {

double sequences_of(const engine::data::Experience& update, Counting counting) {
  if (counting.empty_sequences) return update.sequences();
  double count = 0;
  for (std::int32_t n = 0; n < update.sequences(); ++n) {
    const auto at = [&](std::int32_t i) {
      return update.mask.begin() + update.offsets[static_cast<std::size_t>(i)];
    };
    count += std::accumulate(at(n), at(n + 1), 0.0) > 0 ? 1 : 0;
  }
  return count;
}

}  // namespace

Expr averaged(Aggregation aggregation, const Expr& losses, const engine::data::Experience& b) {
  const Expr total = aggregation == Aggregation::sequence
                         ? sum(mean_by_sequence(losses, b.mask, b.offsets))
                         : sum(where(b.mask, losses, 0.0) * b.mask);
  return total / (b.count * b.scale);
}

void set_constants(engine::data::Experience& update, Aggregation aggregation, double sampled_tokens,
                   double longest, Counting counting) {
  update.scale = 1;
  switch (aggregation) {
    case Aggregation::constant:
      update.scale = longest;
      [[fallthrough]];
    case Aggregation::sequence:
    case Aggregation::sequence_sum:
      update.count = sequences_of(update, counting);
      break;
    case Aggregation::token_local:
      update.count = std::accumulate(update.mask.begin(), update.mask.end(), 0.0);
      break;
    case Aggregation::token_global:
      update.count = sampled_tokens;
      break;
    case Aggregation::token_sum:
      update.count = 1;
  }
  if (update.count == 0) update.count = 1;
  check(update.scale > 0, "set_constants: the longest completion allowed is not known");
}

}  // namespace troupe::algorithms
