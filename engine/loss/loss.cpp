#include "engine/loss/loss.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/text.h"

namespace troupe::engine::loss {
namespace {

Expr leaf(std::span<const float> column, const data::Experience& batch) {
  if (column.empty() && batch.token_count() > 0) return {};
  check(column.size() == batch.tokens.size(), "value_and_grads: expected one number per token");
  return variable({column.begin(), column.end()});
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

ValueAndGrads value_and_grads(const AnyLoss& loss, const Outputs& outputs,
                              const data::Experience& batch, Report& report) {
  check(batch.count > 0, "value_and_grads: the batch has no denominator (Experience::count)");
  check(!outputs.logp.empty() || !loss.needs().logp || batch.token_count() == 0,
        "value_and_grads: log-probabilities are missing");
  TokenStats now{leaf(outputs.logp, batch), leaf(outputs.entropy, batch), {}, {}};
  if (!outputs.collision.empty()) now.collision = detach(leaf(outputs.collision, batch));
  for (const auto& column : outputs.scores) now.scores.push_back(leaf(column, batch));
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
