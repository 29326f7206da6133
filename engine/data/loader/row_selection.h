// RowSelection: which rows of a source are used: the first ones only, and either those held out for
// evaluation or the others.
#pragma once

#include <cstdint>

namespace troupe::engine::data {

struct RowSelection {
  std::int64_t first_rows = 0;  ///< only the first rows of each source; 0: all
  double split = 0;             ///< fraction of the rows held out, in [0, 1)
  bool held_out = false;        ///< use the rows held out instead of the others
  std::uint64_t seed = 0;       ///< of the choice of the rows held out

  /// Whether the position within a source decides which rows are used.
  bool any() const { return first_rows > 0 || split > 0; }
  /// True if there is no row to use from row `number` of the source on, counted from 0.
  bool ends_before(std::int64_t number) const { return first_rows > 0 && number >= first_rows; }
  bool uses(std::int64_t number) const;
};

/// Whether row `number` of a source, counted from 0, is held out: of every 1 / split consecutive
/// rows exactly one is, chosen by the seed. Adding rows at the end changes nothing for the others.
bool is_held_out(std::int64_t number, double split, std::uint64_t seed);

}  // namespace troupe::engine::data
