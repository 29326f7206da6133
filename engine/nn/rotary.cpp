#include "engine/nn/rotary.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/base/check.h"

namespace troupe::engine::nn {
namespace {

// visit(n, length) for each sequence that has rows in the pass.
template <class Visit>
void each_length(const Pass& pass, Visit visit) {
  const auto& layout = pass.layout;
  for (std::size_t n = 0; n + 1 < layout.offsets.size(); ++n) {
    if (layout.offsets[n] == layout.offsets[n + 1]) continue;
    const std::int32_t last = layout.positions[static_cast<std::size_t>(layout.offsets[n + 1] - 1)];
    visit(n, pass.lengths.empty() ? last + 1 : pass.lengths[n]);
  }
}

std::int64_t grown(std::int64_t rows) {
  return std::max<std::int64_t>(
      256, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(rows))));
}

}  // namespace

std::int64_t RotarySpec::set_of(std::int64_t length) const {
  if (trained == 0 || length <= trained) return 0;
  return longer.empty() ? length : 1;
}

std::vector<double> RotarySpec::frequencies(std::int64_t set) const {
  if (set == 0) return inverse_frequencies;
  if (!longer.empty()) return longer;
  const auto turning = std::count_if(inverse_frequencies.begin(), inverse_frequencies.end(),
                                     [](double f) { return f != 0; });
  const double growth =
      stretch * static_cast<double>(set) / static_cast<double>(trained) - (stretch - 1);
  std::vector<double> out =
      inverse_frequencies;  // of pair i: base^(-2i/d), with base * growth^(d/(d-2)) for the base
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] *= std::pow(growth, -static_cast<double>(i) / static_cast<double>(turning - 1));
  return out;
}

RotaryTable::RotaryTable(ops::Device& device, RotarySpec spec)
    : device_(&device), spec_(std::move(spec)) {
}

void RotaryTable::reserve(std::int64_t count) {
  if (count <= blocks_[0].rows) return;
  blocks_[0].rows = grown(count);
  build();
}

void RotaryTable::reserve(const Pass& pass) {
  if (spec_.trained == 0) {
    if (!pass.layout.positions.empty())
      reserve(*std::ranges::max_element(pass.layout.positions) + 1);
    return;
  }
  std::map<std::int64_t, Block> wanted;
  each_length(pass, [&](std::size_t, std::int64_t length) {
    Block& block = wanted[spec_.set_of(length)];
    block.rows = std::max(block.rows, length);
  });
  const bool there = std::ranges::all_of(wanted, [&](const auto& each) {
    const auto found = blocks_.find(each.first);
    return found != blocks_.end() && found->second.rows >= each.second.rows;
  });
  if (there) return;
  // Sets that no row of this pass uses go: a sequence that grows has a new one at every token.
  for (auto& [set, block] : wanted) block.rows = grown(block.rows);
  blocks_ = std::move(wanted);
  build();
}

void RotaryTable::build() {
  const auto half = static_cast<std::int64_t>(spec_.inverse_frequencies.size());
  std::vector<float> cosines, sines;
  std::int64_t first = 0;
  const auto factor = static_cast<float>(spec_.factor);
  for (auto& [set, block] : blocks_) {
    block.first = first, first += block.rows;
    const auto frequencies = spec_.frequencies(set);
    for (std::int64_t position = 0; position < block.rows; ++position) {
      for (const double frequency : frequencies) {
        // transformers multiplies in f32, also for models of other types: the angle is rounded as
        // it rounds it
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

void RotaryTable::turn(Tensor& x, const Pass& pass, int heads, bool inverse) const {
  if (spec_.trained == 0)
    return device_->rope(x, pass.layout.positions, cos_, sin_, heads, inverse);
  std::vector<std::int32_t> rows = pass.layout.positions;
  each_length(pass, [&](std::size_t n, std::int64_t length) {
    const auto block = blocks_.find(spec_.set_of(length));
    check(block != blocks_.end(), "RotaryTable: a length that was not reserved");
    for (auto t = pass.layout.offsets[n]; t < pass.layout.offsets[n + 1]; ++t)
      rows[static_cast<std::size_t>(t)] += static_cast<std::int32_t>(block->second.first);
  });
  device_->rope(x, rows, cos_, sin_, heads, inverse);
}

}  // namespace troupe::engine::nn
