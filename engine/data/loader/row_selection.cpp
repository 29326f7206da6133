#include "engine/data/loader/row_selection.h"

#include <cmath>

#include "engine/base/random.h"

namespace troupe::engine::data {
namespace {

// Distinct from the streams of permutations (sampler.h).
constexpr std::uint64_t split_stream = ~std::uint64_t{0};

// Stratum of a row: 1 / split consecutive rows form one.
std::int64_t stratum_of(std::int64_t number, double split) {
  return static_cast<std::int64_t>(std::floor(static_cast<double>(number) * split));
}

// The first row of a stratum.
std::int64_t first_of(std::int64_t stratum, double split) {
  auto row = static_cast<std::int64_t>(std::ceil(static_cast<double>(stratum) / split));
  while (row > 0 && stratum_of(row - 1, split) >= stratum) --row;
  while (stratum_of(row, split) < stratum) ++row;
  return row;
}

}  // namespace

bool is_held_out(std::int64_t number, double split, std::uint64_t seed) {
  if (!(split > 0)) return false;
  const auto stratum = stratum_of(number, split), begin = first_of(stratum, split),
             end = first_of(stratum + 1, split);
  const auto chosen = uniform_below(static_cast<std::uint64_t>(end - begin), seed, split_stream,
                                    static_cast<std::uint64_t>(stratum));
  return number == begin + static_cast<std::int64_t>(chosen);
}

bool RowSelection::uses(std::int64_t number) const {
  return split == 0 || is_held_out(number, split, seed) == held_out;
}

}  // namespace troupe::engine::data
