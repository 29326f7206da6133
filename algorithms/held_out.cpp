#include "algorithms/held_out.h"

#include "algorithms/catalog.h"
#include "engine/base/check.h"

namespace troupe::algorithms {

Tally::Tally(const engine::loss::LossSpec& loss) : loss_(value_or_throw(engine::loss::make_loss(losses(), loss))) {
  check(!loss_.needs().collision && !loss_.needs().scores, "Tally: a loss that reads more than log-probabilities");
}

void Tally::add(const engine::data::Experience& batch, const std::vector<float>& logp) {
  sum_ += engine::loss::evaluate(loss_, {logp, {}, {}, {}}, batch, report_).loss * batch.count;
  count_ += batch.count;
}

Metrics Tally::metrics() const {
  Metrics out{{"eval/loss", count_ == 0 ? 0 : sum_ / count_}};
  for (const auto& [name, value] : report_.values()) out.emplace_back("eval/" + name, value);
  return out;
}

}  // namespace troupe::algorithms
