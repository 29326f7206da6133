#include "engine/generate/rows_to_sample.h"

#include <memory>
#include <utility>

#include "engine/constraints/token_table.h"
#include "engine/ops/temperature.h"

namespace troupe::engine::generate {

namespace {

using Mask = std::shared_ptr<const constraints::TokenMask>;

/// The tokens of both masks; nullptr has all.
Mask both(const Mask& a, const Mask& b) {
  if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
  auto common = std::make_shared<constraints::TokenMask>(*a);
  common->intersect(*b);
  return common;
}

Mask allowed_tokens(const SequenceState& state) {
  try {
    return both(state.constraint.allowed(state.end_tokens), state.request.allowed);
  } catch (const Failure& failure) {
    throw RequestFailure(state.request.id, failure.error());
  }
}

/// The row of the last token and those of the drafts. `end_row`: after the rows of the work.
void add_rows(const Work& work, const SequenceState& state, std::int32_t end_row,
              std::uint64_t& mask_work, std::vector<RowToSample>& rows) {
  const SamplingParams& params = state.request.params;
  const float inverse = ops::inverse_temperature(params.is_greedy() ? 0 : params.temperature);
  rows.push_back({work.sequence, &state.request, state.tokens, state.end_tokens, state.limit,
                  end_row - 1 - work.drafts, inverse, allowed_tokens(state)});
  OutputConstraint constraint = work.drafts > 0 ? state.constraint : OutputConstraint();
  for (std::int32_t k = 1; k <= work.drafts; ++k) {
    RowToSample row = rows.back();
    row.tokens = std::span(state.proposed).first(state.tokens.size() + static_cast<std::size_t>(k));
    ++row.row;
    row.drafted = true;
    if (constraint.constrains()) {
      if (!row.allowed->has(row.tokens.back())) return;
      constraint.append(row.tokens.back(), state.end_tokens);
      try {
        if (!constraint.prepare(mask_work)) return;
        row.allowed = both(constraint.allowed(state.end_tokens), state.request.allowed);
      } catch (const Failure&) {
        return;  // an error only if the output continues so
      }
    }
    rows.push_back(std::move(row));
  }
}

}  // namespace

std::vector<RowToSample> rows_to_sample(const ScheduledStep& plan, const SequenceStates& sequences,
                                        std::uint64_t& mask_work) {
  std::vector<RowToSample> rows;
  std::int32_t end_row = 0;
  for (const Work& work : plan.work) {
    end_row += work.count;
    if (work.samples) add_rows(work, sequences.at(work.sequence), end_row, mask_work, rows);
  }
  return rows;
}

}  // namespace troupe::engine::generate
