#include "engine/nn/rotary.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/base/errors/check.h"

namespace troupe::engine::nn {
namespace {

// Calls visit(n, length) for each sequence that has rows in the pass.
template <class Visit>
void each_length(const ForwardContext& pass, Visit visit) {
  const auto& layout = pass.layout;
  for (std::size_t n = 0; n + 1 < layout.offsets.size(); ++n) {
    if (layout.offsets[n] == layout.offsets[n + 1]) continue;
    const std::int32_t last = layout.positions[static_cast<std::size_t>(layout.offsets[n + 1] - 1)];
    visit(n, pass.lengths.empty() ? last + 1 : pass.lengths[n]);
  }
}

std::int64_t round_up_rows(std::int64_t rows) {
  return std::max<std::int64_t>(
      256, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(rows))));
}

}  // namespace

std::int64_t RotarySpec::frequency_set(std::int64_t length) const {
  if (original_length == 0 || length <= original_length) return 0;
  return long_inverse_frequencies.empty() ? length : 1;
}

std::vector<double> RotarySpec::frequencies(std::int64_t set) const {
  if (set == 0) return inverse_frequencies;
  if (!long_inverse_frequencies.empty()) return long_inverse_frequencies;
  const auto rotated = std::count_if(inverse_frequencies.begin(), inverse_frequencies.end(),
                                     [](double f) { return f != 0; });
  const double growth =
      ntk_factor * static_cast<double>(set) / static_cast<double>(original_length) -
      (ntk_factor - 1);
  std::vector<double> out =
      inverse_frequencies;  // of pair i: base^(-2i/d), with base * growth^(d/(d-2)) for the base
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] *= std::pow(growth, -static_cast<double>(i) / static_cast<double>(rotated - 1));
  return out;
}

RotaryTable::RotaryTable(ops::Device& device, RotarySpec spec)
    : device_(&device), spec_(std::move(spec)) {
}

void RotaryTable::reserve(std::int64_t count) {
  if (count <= blocks_[0].rows) return;
  blocks_[0].rows = round_up_rows(count);
  build();
}

void RotaryTable::reserve(const ForwardContext& pass) {
  if (spec_.original_length == 0) {
    if (!pass.layout.positions.empty())
      reserve(*std::ranges::max_element(pass.layout.positions) + 1);
    return;
  }
  std::map<std::int64_t, Block> wanted;
  each_length(pass, [&](std::size_t, std::int64_t length) {
    Block& block = wanted[spec_.frequency_set(length)];
    block.rows = std::max(block.rows, length);
  });
  const bool available = std::ranges::all_of(wanted, [&](const auto& each) {
    const auto found = blocks_.find(each.first);
    return found != blocks_.end() && found->second.rows >= each.second.rows;
  });
  if (available) return;
  // Drop sets that no row of this pass uses: a growing sequence has a new one at every token.
  for (auto& [set, block] : wanted) block.rows = round_up_rows(block.rows);
  blocks_ = std::move(wanted);
  build();
}

void RotaryTable::build() {
  const auto half = static_cast<std::int64_t>(spec_.inverse_frequencies.size());
  std::vector<float> cosines, sines;
  std::int64_t first = 0;
  const auto factor = static_cast<float>(spec_.factor);
  for (auto& [set, block] : blocks_) {
    block.first = first;
    first += block.rows;
    const auto frequencies = spec_.frequencies(set);
    for (std::int64_t position = 0; position < block.rows; ++position) {
      for (const double frequency : frequencies) {
        // f32, as in transformers for models of every type: equal rounding of the angle.
        const float angle = static_cast<float>(position) * static_cast<float>(frequency);
        const float scale = frequency == 0 ? 1.0f : factor;
        cosines.push_back(static_cast<float>(std::cos(static_cast<double>(angle))) * scale);
        sines.push_back(static_cast<float>(std::sin(static_cast<double>(angle))) * scale);
      }
    }
  }
  cos_ = ops::from_host(*device_, {first, half}, cosines);
  sin_ = ops::from_host(*device_, {first, half}, sines);
}

void RotaryTable::apply(Tensor& x, const ForwardContext& pass, int heads, bool inverse) const {
  if (spec_.original_length == 0)
    return device_->rope(x, pass.layout.row_positions, cos_, sin_, heads, inverse);
  std::vector<std::int32_t> rows = pass.layout.positions;
  each_length(pass, [&](std::size_t n, std::int64_t length) {
    const auto block = blocks_.find(spec_.frequency_set(length));
    check(block != blocks_.end(), "RotaryTable: length not reserved");
    for (auto t = pass.layout.offsets[n]; t < pass.layout.offsets[n + 1]; ++t)
      rows[static_cast<std::size_t>(t)] += static_cast<std::int32_t>(block->second.first);
  });
  device_->rope(x, device_->indices(rows), cos_, sin_, heads, inverse);
}

}  // namespace troupe::engine::nn
