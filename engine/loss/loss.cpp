#include "engine/loss/loss.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/text.h"

namespace troupe::engine::loss {
namespace {

Expr leaf(std::span<const float> column, const data::Experience& batch) {
  if (column.empty() && batch.token_count() > 0) return {};
  check(column.size() == batch.tokens.size(), "evaluate: one number per token is needed");
  return variable({column.begin(), column.end()});
}

std::vector<float> to_float(const std::vector<double>& values) {
  std::vector<float> out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = static_cast<float>(values[i]);
  return out;
}

// A loss that only reports an entropy costs no backward pass through it.
std::vector<float> unless_zero(const std::vector<double>& values) {
  const bool zero = std::all_of(values.begin(), values.end(), [](double v) { return v == 0; });
  return zero ? std::vector<float>{} : to_float(values);
}

}  // namespace

Result<AnyLoss> make_loss(const LossTable& table, const LossSpec& spec) {
  if (const auto found = table.find(spec.name); found != table.end()) return found->second(spec.fields);
  std::vector<std::string> known;
  for (const auto& [name, factory] : table) known.push_back(name);
  const std::string near = nearest(spec.name, known);
  return fail(Errc::usage, cat("unknown loss ", quote(spec.name), near.empty() ? "" : cat(", did you mean ", near, "?"), " Known are ",
                               join(known, ", ")));
}

Evaluation evaluate(const AnyLoss& loss, const Outputs& outputs, const data::Experience& batch, Report& report) {
  check(batch.count > 0, "evaluate: the batch does not say what the loss averages over (Experience::count)");
  check(!outputs.logp.empty() || batch.token_count() == 0, "evaluate: log-probabilities are missing");
  const TokenStats now{leaf(outputs.logp, batch), leaf(outputs.entropy, batch), leaf(outputs.value, batch)};
  const Expr scalar = loss(now, batch, report);
  std::vector<Expr> leaves{now.logp};
  if (!now.entropy.empty()) leaves.push_back(now.entropy);
  if (!now.value.empty()) leaves.push_back(now.value);
  const auto slopes = gradients(scalar, leaves);
  Evaluation out{scalar.value(), to_float(slopes[0]), {}, {}};
  std::size_t next = 1;
  if (!now.entropy.empty()) out.dentropy = unless_zero(slopes[next++]);
  if (!now.value.empty()) out.dvalue = unless_zero(slopes[next]);
  return out;
}

}  // namespace troupe::engine::loss
