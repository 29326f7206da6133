// Megatron's --split: "969, 30, 1" divides the sequences of a dataset into training, validation and
// test data by weight.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "engine/data/megatron/gpt_dataset.h"

namespace troupe::engine::data::megatron {

/// Training, validation and test data.
constexpr std::size_t split_count = 3;
using SplitWeights = std::array<double, split_count>;

/// The normalized weights of "969,30,1"; missing ones are 0. Errc::usage for anything but one to
/// three non-negative numbers, not all 0.
Result<SplitWeights> parse_split(std::string_view text);

/// The sequences of each split: the cumulative weights times `sequences`, rounded half to even.
/// nullopt for a split of weight 0.
std::array<std::optional<SequenceRange>, split_count> split_ranges(const SplitWeights& weights,
                                                                   std::int64_t sequences);

}  // namespace troupe::engine::data::megatron
