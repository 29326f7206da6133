#include "engine/parallel/all_reduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/base/errors/error.h"
#include "engine/base/text/text.h"

namespace troupe::engine::parallel {
namespace {

/// Up to this length every rank gathers all vectors and reduces them itself: one collective, not
/// two.
constexpr std::size_t small = 4096;
/// Longer vectors are reduced in chunks of this many values; scratch memory is at most two chunks.
constexpr std::size_t chunk_values = std::size_t{1} << 20;

/// into[i] = ((block 0 [i] op block 1 [i]) op block 2 [i]) ..., for `ranks` consecutive blocks of
/// n.
template <class T, class Op>
void fold(const T* blocks, std::size_t ranks, std::size_t n, T* into, Op op) {
  std::copy_n(blocks, n, into);
  for (std::size_t r = 1; r < ranks; ++r)
    for (std::size_t i = 0; i < n; ++i) into[i] = op(into[i], blocks[r * n + i]);
}

/// Each rank reduces one block of the chunk, then all gather the results. `mine` and `theirs` are
/// scratch memory.
template <class T, class Op>
void reduce_chunk(Communicator& group, std::span<T> values, std::vector<T>& mine,
                  std::vector<T>& theirs, std::string_view what, Op op) {
  const std::size_t ranks = group.size(), block = (values.size() + ranks - 1) / ranks;
  mine.resize(block * ranks);
  theirs.resize(block * ranks);
  std::copy(values.begin(), values.end(), mine.begin());
  std::fill(mine.begin() + values.size(), mine.end(), T{});  // the last blocks are padded
  group.all_to_all(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(theirs)), what);
  const auto reduced = std::span(mine).subspan(group.rank() * block, block);
  fold(theirs.data(), ranks, block, reduced.data(), op);
  group.all_gather(std::as_bytes(reduced), std::as_writable_bytes(std::span(theirs)), what);
  std::copy_n(theirs.begin(), values.size(), values.begin());
}

/// The same for sums of floats, without copies: each rank sums one block where it lies.
void sum_in_place(Communicator& group, std::span<float> values, std::string_view what) {
  const auto ranks = static_cast<std::size_t>(group.size());
  const std::size_t block = (values.size() + ranks - 1) / ranks;
  std::vector<std::size_t> counts, bytes;
  for (std::size_t r = 0; r < ranks; ++r) {
    counts.push_back(std::min(block, values.size() - std::min(r * block, values.size())));
    bytes.push_back(counts.back() * sizeof(float));
  }
  const auto rank = static_cast<std::size_t>(group.rank());
  const auto part = values.subspan(std::min(rank * block, values.size()), counts[rank]);
  group.start_reduce_scatter(values, counts, part, what).wait();
  group.start_all_gather(std::as_bytes(part), std::as_writable_bytes(values), bytes, what).wait();
}

template <class T, class Op>
void reduce(Communicator& group, std::span<T> values, std::string_view what, Op op) {
  const std::size_t ranks = group.size();
  if (ranks == 1) return;
  std::vector<T> mine, theirs;
  if (values.size() <= small) {
    theirs.resize(values.size() * ranks);
    group.all_gather(std::as_bytes(values), std::as_writable_bytes(std::span(theirs)), what);
    fold(theirs.data(), ranks, values.size(), values.data(), op);
    return;
  }
  for (std::size_t begin = 0; begin < values.size(); begin += chunk_values)
    reduce_chunk(group, values.subspan(begin, std::min(chunk_values, values.size() - begin)), mine,
                 theirs, what, op);
}

/// Every rank's bytes, by rank, and their sizes.
struct Gathered {
  std::vector<std::byte> bytes;
  std::vector<std::uint64_t> sizes;
};

Gathered gather(Communicator& group, std::span<const std::byte> mine, std::string_view what,
                std::size_t limit) {
  Gathered all;
  all.sizes.resize(group.size());
  const std::uint64_t own[] = {mine.size()};
  group.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all.sizes)),
                   what);
  std::uint64_t total = 0, longest = 0;
  for (const auto n : all.sizes) {
    if (n > limit || total > limit - n)
      throw Failure(Error{Errc::full, cat("'", what, "': the ranks send more than the limit of ",
                                          limit, " bytes together")});
    total += n;
    longest = std::max(longest, n);
  }
  if (total == 0) return all;
  all.bytes.resize(total);
  if (total == longest * all.sizes.size()) {  // equal lengths
    group.all_gather(mine, all.bytes, what);
    return all;
  }
  std::size_t begin = 0;
  for (int r = 0; r < group.size(); begin += all.sizes[r++]) {
    if (all.sizes[r] == 0) continue;
    const auto part = std::span(all.bytes).subspan(begin, all.sizes[r]);
    if (r == group.rank()) std::copy(mine.begin(), mine.end(), part.begin());
    group.broadcast(part, r, what);
  }
  return all;
}

}  // namespace

void all_reduce_sum(Communicator& group, std::span<float> values, std::string_view what) {
  if (values.size() <= small)
    return reduce(group, values, what, [](float a, float b) { return a + b; });
  for (std::size_t begin = 0; group.size() > 1 && begin < values.size(); begin += chunk_values)
    sum_in_place(group, values.subspan(begin, std::min(chunk_values, values.size() - begin)), what);
}

void all_reduce_sum(Communicator& group, std::span<double> values, std::string_view what) {
  reduce(group, values, what, [](double a, double b) { return a + b; });
}

void all_reduce_max(Communicator& group, std::span<float> values, std::string_view what) {
  reduce(group, values, what, [](float a, float b) { return b > a || std::isnan(b) ? b : a; });
}

std::vector<std::string> gather_strings(Communicator& group, std::string_view mine,
                                        std::string_view what, std::size_t limit) {
  const Gathered all = gather(group, std::as_bytes(std::span(mine)), what, limit);
  std::vector<std::string> strings;
  const char* next = reinterpret_cast<const char*>(all.bytes.data());
  for (const auto n : all.sizes) {
    strings.emplace_back(next, n);
    next += n;
  }
  return strings;
}

std::vector<float> gather_floats(Communicator& group, std::span<const float> mine,
                                 std::string_view what) {
  const Gathered all = gather(group, std::as_bytes(mine), what, std::size_t{1} << 36);
  std::vector<float> values(all.bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), all.bytes.data(), all.bytes.size());
  return values;
}

void barrier(Communicator& group, std::string_view what) {
  const std::byte mine{};
  std::vector<std::byte> all(group.size());
  group.all_gather(std::span(&mine, 1), all, what);
}

}  // namespace troupe::engine::parallel
