#include "engine/loss/loss.h"

#include <algorithm>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::engine::loss {
namespace {

// Outputs of the heads as leaves of the tape, or as constants.
TokenStats leaves_of(const AnyLoss& loss, const Outputs& outputs, const data::Experience& batch,
                     bool with_gradients) {
  check(batch.count > 0, "value_and_grads: the batch has no denominator (Experience::count)");
  check(!outputs.logp.empty() || !loss.needs().logp || batch.token_count() == 0,
        "value_and_grads: log-probabilities are missing");
  const auto leaf = [&](std::span<const float> column) -> Expr {
    if (column.empty() && batch.token_count() > 0) return {};
    check(column.size() == batch.tokens.size(), "value_and_grads: expected one number per token");
    const std::vector<double> values(column.begin(), column.end());
    return with_gradients ? variable(values) : Expr(values);
  };
  TokenStats now{leaf(outputs.logp), leaf(outputs.entropy), {}, {}, {}};
  if (!outputs.whole_entropy.empty()) now.whole_entropy = detach(leaf(outputs.whole_entropy));
  if (!outputs.collision.empty()) now.collision = detach(leaf(outputs.collision));
  for (const auto& column : outputs.scores) now.scores.push_back(leaf(column));
  return now;
}

std::vector<float> to_float(const std::vector<double>& values) {
  std::vector<float> out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = static_cast<float>(values[i]);
  return out;
}

// A loss that only reports the entropy needs no backward pass through it.
std::vector<float> unless_zero(const std::vector<double>& values) {
  const bool zero = std::all_of(values.begin(), values.end(), [](double v) { return v == 0; });
  return zero ? std::vector<float>{} : to_float(values);
}

}  // namespace

Result<AnyLoss> make_loss(const LossTable& table, const LossSpec& spec) {
  if (const auto found = table.find(spec.name); found != table.end())
    return found->second(spec.fields);
  std::vector<std::string> known;
  for (const auto& [name, factory] : table) known.push_back(name);
  const std::string near = nearest(spec.name, known);
  return fail(Errc::usage,
              cat("unknown loss ", quote(spec.name),
                  near.empty() ? "; the known losses are "
                               : cat("; did you mean ", near, "? The known losses are "),
                  join(known, ", ")));
}

double value(const AnyLoss& loss, const Outputs& outputs, const data::Experience& batch,
             Report& report) {
  return loss(leaves_of(loss, outputs, batch, false), batch, report).value();
}

ValueAndGrads value_and_grads(const AnyLoss& loss, const Outputs& outputs,
                              const data::Experience& batch, Report& report) {
  const TokenStats now = leaves_of(loss, outputs, batch, true);
  const Expr scalar = loss(now, batch, report);

  std::vector<Expr> leaves;
  for (const Expr& each : {now.logp, now.entropy})
    if (!each.empty()) leaves.push_back(each);
  leaves.insert(leaves.end(), now.scores.begin(), now.scores.end());
  const auto grads = gradients(scalar, leaves);
  ValueAndGrads out{scalar.value(), {}, {}, {}};
  std::size_t next = 0;
  if (!now.logp.empty()) out.dlogp = to_float(grads[next++]);
  if (!now.entropy.empty()) out.dentropy = unless_zero(grads[next++]);
  while (next < grads.size()) out.dscores.push_back(to_float(grads[next++]));
  return out;
}

}  // namespace troupe::engine::loss
