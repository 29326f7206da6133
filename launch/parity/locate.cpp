#include "launch/parity/locate.h"

#include <algorithm>
#include <bit>

#include "engine/base/text/text.h"
#include "engine/models/decoder.h"
#include "engine/nn/saved.h"

namespace troupe::launch::parity {
namespace {

namespace nn = engine::nn;

std::string block_name(std::size_t block, std::int64_t layers, const Recorder::Step& step) {
  if (step.place.op == "gather_rows") return "embedding";
  return block < static_cast<std::size_t>(layers) ? cat("layer ", block) : "head";
}

/// The operations of one pass over tokens; hidden states [T, D].
Tensor trace(const PathInputs& in, Recorder& recorder, std::span<const std::int32_t> tokens,
             std::vector<Recorder::Step>& steps) {
  engine::ops::Device& device = in.decoder.device();
  engine::ops::Layout rows{{0, static_cast<std::int32_t>(tokens.size())}, {}};
  for (std::int32_t t = 0; t < rows.offsets.back(); ++t) rows.positions.push_back(t);
  const engine::ops::PreparedLayout layout = device.prepare(rows);
  nn::PassHooks hooks;
  hooks.before_forward = [&](std::size_t block) { recorder.block(block); };
  nn::Saved nothing = nn::Saved::nothing();
  recorder.begin_trace();
  const Tensor hidden = in.decoder.forward(
      tokens, {.device = device, .layout = layout, .precision = in.precision, .hooks = &hooks},
      nothing);
  steps = recorder.end_trace();
  return hidden;
}

/// What the paths should have computed for the token that differs.
struct Expected {
  std::vector<Recorder::Step> steps, logits;
  TokenValues values;
};

Expected expected_of(const PathInputs& in, Recorder& recorder, const Text& text,
                     std::int32_t position, std::int32_t length) {
  const auto tokens = std::span(text.tokens).first(static_cast<std::size_t>(length));
  Expected out;
  const Tensor state =
      trace(in, recorder, tokens, out.steps).rows(position - 1, position);  // [1, D]
  const nn::Head& head = in.decoder.head();
  recorder.begin_trace();
  recorder.block(static_cast<std::size_t>(in.decoder.spec().layers));
  head.logits(state, in.precision);
  out.logits = recorder.end_trace();
  const std::int32_t token = text.tokens[static_cast<std::size_t>(position)];
  const nn::TokenScores scores =
      head.forward(state, {.ids = std::span(&token, 1), .precision = in.precision}, true);
  const auto value = [&](const Tensor& x) {
    return engine::ops::to_host(in.decoder.device(), x).front();
  };
  out.values = {token, value(scores.logp), value(scores.lse), value(scores.entropy)};
  return out;
}

Location location_of(const PathInputs& in, const Recorder::Step& step, const Suspect& suspect,
                     std::optional<std::int32_t> position) {
  return {std::string(suspect.path), block_name(step.block, in.decoder.spec().layers, step),
          step.place.op, position};
}

/// One of the first `rows` rows of the steps, the first of which is of position `first`, that the
/// path has not computed.
std::optional<Location> missing_row(const PathInputs& in, std::span<const Recorder::Step> steps,
                                    std::int32_t first, std::int32_t rows, const Suspect& suspect) {
  for (const Recorder::Step& step : steps) {
    const auto found = suspect.computed.find(step.place);
    if (found == suspect.computed.end()) continue;  // the path computes it by another operation
    for (std::int32_t row = 0; row < std::min<std::ptrdiff_t>(rows, std::ssize(step.rows)); ++row)
      if (!found->second.contains(step.rows[static_cast<std::size_t>(row)]))
        return location_of(in, step, suspect, first + row);
  }
  return std::nullopt;
}

/// A row that the path has computed and no text has.
std::optional<Location> foreign_row(const PathInputs& in, std::span<const Recorder::Step> steps,
                                    const ComputedRows& right, const Suspect& suspect) {
  for (const Recorder::Step& step : steps) {
    const auto found = suspect.computed.find(step.place);
    if (found == suspect.computed.end()) continue;
    const auto& known = right.at(step.place);
    if (!std::ranges::all_of(found->second, [&](std::uint64_t row) { return known.contains(row); }))
      return location_of(in, step, suspect, std::nullopt);
  }
  return std::nullopt;
}

ComputedRows rows_of_all(const PathInputs& in, Recorder& recorder) {
  constexpr std::int64_t logits_at_a_time = 64;
  ComputedRows out;
  const auto add = [&](const std::vector<Recorder::Step>& steps) {
    for (const Recorder::Step& step : steps)
      out[step.place].insert(step.rows.begin(), step.rows.end());
  };
  for (const Text& text : in.texts) {
    std::vector<Recorder::Step> steps;
    const Tensor hidden = trace(in, recorder, text.tokens, steps);
    add(steps);
    for (std::int64_t row = 0; row < hidden.shape()[0]; row += logits_at_a_time) {
      recorder.begin_trace();
      in.decoder.head().logits(
          hidden.rows(row, std::min(row + logits_at_a_time, hidden.shape()[0])), in.precision);
      add(recorder.end_trace());
    }
  }
  return out;
}

bool has_values(const TokenValues& expected, const TokenValues& found) {
  const auto differs = [](const std::optional<float>& a, const std::optional<float>& b) {
    return a && b && std::bit_cast<std::uint32_t>(*a) != std::bit_cast<std::uint32_t>(*b);
  };
  return expected.token == found.token && !differs(expected.logp, found.logp) &&
         !differs(expected.lse, found.lse) && !differs(expected.entropy, found.entropy);
}

}  // namespace

std::optional<Location> locate(const PathInputs& in, Recorder& recorder, std::size_t number,
                               std::int32_t position, std::int32_t length,
                               std::span<const Suspect> suspects) {
  const Expected expected = expected_of(in, recorder, in.texts[number], position, length);
  for (const Suspect& suspect : suspects)
    if (auto found = missing_row(in, expected.steps, 0, position, suspect)) return found;
  if (!in.decoder.spec().keys_depend_on_length()) {
    const ComputedRows right = rows_of_all(in, recorder);
    for (const Suspect& suspect : suspects) {
      if (!suspect.only_texts) continue;
      for (const auto* steps : {&expected.steps, &expected.logits})
        if (auto found = foreign_row(in, *steps, right, suspect)) return found;
    }
  }
  for (const Suspect& suspect : suspects)
    if (auto found = missing_row(in, expected.logits, position - 1, 1, suspect)) return found;
  for (const Suspect& suspect : suspects)
    if (!has_values(expected.values, suspect.values))
      return Location{std::string(suspect.path), "head", suspect.score_op, position - 1};
  return std::nullopt;
}

}  // namespace troupe::launch::parity
