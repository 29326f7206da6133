#include "algorithms/losses/orm_loss.h"

#include "engine/base/errors/check.h"

namespace troupe::algorithms {

using namespace engine::loss;

static_assert(Loss<OrmLoss>);

Expr OrmLoss::operator()(const TokenStats& now, const engine::data::Experience& b,
                         Report& report) const {
  check(now.scores.size() == 1, "OrmLoss: one score a token is needed");
  const Expr score =
      sum_by_sequence(where(b.mask, now.scores.front(), 0.0) * b.mask, b.offsets);  // [N]
  const Expr won = chosen(score), lost = rejected(score);                           // [N/2]
  const Expr margin =
      kind == OrmLossKind::bradley_terry && !b.label.empty() ? chosen(Expr(b.label)) : Expr(0.0);
  report.mean("accuracy", won > lost);
  report.mean("margin", won - lost);
  report.mean("mean_reward", score);
  for (const double value : score.values()) {
    report.min("min_reward", value);
    report.max("max_reward", value);
  }
  return sum(softplus(lost - won + margin) + center * square(won + lost)) / b.count;
}

}  // namespace troupe::algorithms
