#include "algorithms/held_out.h"

#include "algorithms/catalog.h"
#include "engine/base/check.h"

namespace troupe::algorithms {

Tally::Tally(const engine::loss::LossSpec& loss)
    : loss_(value_or_throw(engine::loss::make_loss(losses(), loss))) {
  check(!loss_.needs().collision && !(loss_.needs().scores && loss_.needs().logp),
        "Tally: a loss that reads more than one thing");
}

void Tally::add(const engine::data::Experience& batch, const std::vector<float>& logp) {
  sum_ += engine::loss::evaluate(loss_, {logp, {}, {}, {}}, batch, report_).loss * batch.count;
  count_ += batch.count;
}

void Tally::add_scores(const engine::data::Experience& batch, const std::vector<float>& scores) {
  const std::size_t tokens = batch.tokens.size();
  check(tokens > 0 && scores.size() % tokens == 0, "Tally: [T, C] scores are needed");
  std::vector<std::vector<float>> columns(scores.size() / tokens);
  for (std::size_t i = 0; i < scores.size(); ++i) columns[i % columns.size()].push_back(scores[i]);
  sum_ += engine::loss::evaluate(loss_, {{}, {}, {}, std::move(columns)}, batch, report_).loss *
          batch.count;
  count_ += batch.count;
}

Metrics Tally::metrics() const {
  Metrics out{{"eval/loss", count_ == 0 ? 0 : sum_ / count_}};
  for (const auto& [name, value] : report_.values()) out.emplace_back("eval/" + name, value);
  return out;
}

}  // namespace troupe::algorithms
