#include "engine/parallel/blocks.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::engine::parallel {
namespace {

void check_spans(bool ok, std::string_view kind, std::string_view what) {
  if (!ok) check(false, cat(kind, " '", what, "': the counts do not match the spans"));
}

}  // namespace

std::size_t total(Counts counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

std::size_t block_begin(Counts counts, int rank) {
  return total(counts.first(static_cast<std::size_t>(rank)));
}

void check_all_gather(std::span<const std::byte> mine, std::span<const std::byte> all,
                      Counts counts, int rank, int size, std::string_view what) {
  check_spans(std::ssize(counts) == size && total(counts) == all.size() &&
                  counts[static_cast<std::size_t>(rank)] == mine.size(),
              "all_gather", what);
}

void check_all_to_all(std::span<const std::byte> mine, Counts sent,
                      std::span<const std::byte> theirs, Counts received, int size,
                      std::string_view what) {
  check_spans(std::ssize(sent) == size && total(sent) == mine.size() &&
                  std::ssize(received) == size && total(received) == theirs.size(),
              "all_to_all", what);
}

void check_reduce_scatter(std::span<const float> values, Counts counts, std::span<const float> part,
                          int rank, int size, std::string_view what) {
  check_spans(std::ssize(counts) == size && total(counts) == values.size() &&
                  counts[static_cast<std::size_t>(rank)] == part.size(),
              "reduce_scatter", what);
}

void sum_blocks(std::span<const float* const> blocks, std::span<float> into) {
  // Sums of a few values at a time: `into` is written after all blocks were read, and they stay in
  // the first level of the cache.
  std::array<float, 1024> sums;
  for (std::size_t begin = 0; begin < into.size(); begin += sums.size()) {
    const std::size_t n = std::min(sums.size(), into.size() - begin);
    std::copy_n(blocks[0] + begin, n, sums.begin());
    for (const float* block : blocks.subspan(1))
      for (std::size_t i = 0; i < n; ++i) sums[i] += block[begin + i];
    std::copy_n(sums.begin(), n, into.begin() + static_cast<std::ptrdiff_t>(begin));
  }
}

}  // namespace troupe::engine::parallel
