// Rows of a table that is split over the ranks of a tensor-parallel group.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/sets/id_sets.h"
#include "engine/nn/parameters.h"

namespace troupe::engine::nn {

/// Converts ids of the whole vocabulary to rows of this rank's part of `table`: `elsewhere` for ids
/// of other parts; negative ids stay. The result lies in `storage`, or is `ids` itself where the
/// table is whole. An id beyond the vocabulary is a Bug.
std::span<const std::int32_t> local_rows(const Parameter& table, std::span<const std::int32_t> ids,
                                         std::int32_t elsewhere,
                                         std::vector<std::int32_t>& storage);

/// The columns of this rank's part of the logits that sets of ids of the whole vocabulary keep, for
/// the rows of a table. Throws Failure for a set that decode_id_set() refuses.
ops::ColumnMask local_columns(const Parameter& table, const IdSets& sets);

}  // namespace troupe::engine::nn
