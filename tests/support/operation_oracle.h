// operation_oracle.h: every non-blocking operation of a Communicator against plain loops over
// inputs that a seed determines. Runs on every rank of a group, whatever implements it.
#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "engine/base/random/random.h"
#include "engine/base/text/text.h"
#include "engine/parallel/communicator.h"

namespace troupe::test {

using engine::parallel::Communicator;
using engine::parallel::Pending;
using Lengths = std::vector<std::size_t>;

/// Values of very different magnitudes: another order of summation gives other bits.
inline std::vector<float> floats_of(int rank, std::uint64_t seed, std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i)
    values[i] = static_cast<float>((uniform(seed, static_cast<std::uint64_t>(rank), i) - 0.5) *
                                   std::pow(10.0, static_cast<double>((i + rank) % 7)));
  return values;
}

inline std::vector<std::byte> bytes_of_rank(int rank, std::uint64_t seed, std::size_t n) {
  std::vector<std::byte> bytes(n);
  for (std::size_t i = 0; i < n; ++i)
    bytes[i] =
        static_cast<std::byte>(uniform_below(256, seed, static_cast<std::uint64_t>(rank), i));
  return bytes;
}

inline std::size_t sum_of(const Lengths& lengths) {
  std::size_t sum = 0;
  for (const auto n : lengths) sum += n;
  return sum;
}

/// Lengths by rank: equal, uneven, zero for some ranks, zero for all but one, zero.
inline std::vector<Lengths> length_patterns(int ranks) {
  std::vector<Lengths> all(6, Lengths(static_cast<std::size_t>(ranks), 0));
  for (std::size_t r = 0; r < all[0].size(); ++r) {
    all[0][r] = 5;
    all[1][r] = 1 + 37 * r % 11;
    all[2][r] = r % 2 ? 0 : 3 + r;
    all[3][r] = r + 1 == all[0].size() ? 9 : 0;
    all[5][r] = 5000 + 1237 * r;
  }
  return all;
}

/// What one rank does in an operation, and what must be in `into` afterwards.
struct Expected {
  std::string title;
  Pending pending;
  std::vector<std::byte> into, expected;
  std::vector<std::byte> sent;  ///< alive until the wait
  std::vector<float> values;
};

inline Expected gather_case(Communicator& group, const Lengths& lengths, bool in_place,
                            std::uint64_t seed) {
  const auto rank = static_cast<std::size_t>(group.rank());
  Expected one{cat("all_gather ", seed, in_place ? " in place" : ""), {}, {}, {}, {}, {}};
  std::size_t own = 0;
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    if (r == rank) own = one.expected.size();
    const auto part = bytes_of_rank(static_cast<int>(r), seed, lengths[r]);
    one.expected.insert(one.expected.end(), part.begin(), part.end());
  }
  one.into.resize(one.expected.size());
  one.sent = bytes_of_rank(group.rank(), seed, lengths[rank]);
  std::span<const std::byte> mine = one.sent;
  if (in_place) {
    std::copy(one.sent.begin(), one.sent.end(),
              one.into.begin() + static_cast<std::ptrdiff_t>(own));
    mine = std::span(one.into).subspan(own, lengths[rank]);
  }
  one.pending = group.start_all_gather(mine, one.into, lengths, one.title);
  return one;
}

/// Rank r sends (lengths[r] * (s + 1)) % 41 bytes to rank s.
inline Expected exchange_case(Communicator& group, const Lengths& lengths, std::uint64_t seed) {
  Expected one{cat("all_to_all ", seed), {}, {}, {}, {}, {}};
  const auto sent_by = [&](std::size_t r) {
    Lengths out;
    for (std::size_t s = 0; s < lengths.size(); ++s) out.push_back(lengths[r] * (s + 1) % 41);
    return out;
  };
  const auto rank = static_cast<std::size_t>(group.rank());
  Lengths received;
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    const Lengths counts = sent_by(r);
    const auto all = bytes_of_rank(static_cast<int>(r), seed, sum_of(counts));
    std::size_t at = 0;
    for (std::size_t s = 0; s < rank; ++s) at += counts[s];
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(at);
    one.expected.insert(one.expected.end(), first,
                        first + static_cast<std::ptrdiff_t>(counts[rank]));
    received.push_back(counts[rank]);
  }
  const Lengths sent = sent_by(rank);
  one.sent = bytes_of_rank(group.rank(), seed, sum_of(sent));
  one.into.resize(one.expected.size());
  one.pending = group.start_all_to_all(one.sent, sent, one.into, received, one.title);
  return one;
}

/// The loop over the ranks in their order in f32. Sets `wrong` if a sum in f64 disagrees with it.
inline Expected reduce_case(Communicator& group, const Lengths& lengths, std::uint64_t seed,
                            std::string& wrong) {
  Expected one{cat("reduce_scatter ", seed), {}, {}, {}, {}, {}};
  const auto rank = static_cast<std::size_t>(group.rank());
  std::size_t begin = 0;
  for (std::size_t r = 0; r < rank; ++r) begin += lengths[r];
  std::vector<std::vector<float>> all;
  for (int r = 0; r < group.size(); ++r) all.push_back(floats_of(r, seed, sum_of(lengths)));
  std::vector<float> sums(lengths[rank]);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    double exact = 0, size = 0;
    for (std::size_t r = 0; r < all.size(); ++r) {
      const float value = all[r][begin + i];
      sums[i] = r == 0 ? value : sums[i] + value;
      exact += double{value};
      size += std::abs(double{value});
    }
    if (std::abs(double{sums[i]} - exact) > 1e-6 * size) wrong = one.title + " in f64";
  }
  const auto bytes = std::as_bytes(std::span(sums));
  one.expected.assign(bytes.begin(), bytes.end());
  one.values = all[rank];
  one.into.resize(one.expected.size());
  one.pending = group.start_reduce_scatter(
      one.values, lengths, {reinterpret_cast<float*>(one.into.data()), lengths[rank]}, one.title);
  return one;
}

/// Three messages around a ring, the second one empty: every rank starts to receive them, then to
/// send.
inline std::vector<Expected> ring_cases(Communicator& group, const Lengths& lengths,
                                        std::uint64_t seed) {
  const int next = (group.rank() + 1) % group.size(),
            previous = (group.rank() + group.size() - 1) % group.size();
  std::vector<Expected> all;
  const auto length = [&](int rank, int i) {
    return i == 1 ? 0 : lengths[static_cast<std::size_t>(rank)] + static_cast<std::size_t>(i);
  };
  for (const bool sends : {false, true})
    for (int i = 0; i < 3; ++i) {
      Expected one{"a message of a ring", {}, {}, {}, {}, {}};
      if (sends) {
        one.sent = bytes_of_rank(group.rank(), seed + i, length(group.rank(), i));
        one.pending = group.start_send(one.sent, next, one.title);
      } else {
        one.expected = bytes_of_rank(previous, seed + i, length(previous, i));
        one.into.resize(one.expected.size());
        one.pending = group.start_receive(one.into, previous, one.title);
      }
      all.push_back(std::move(one));
    }
  return all;
}

/// Runs all operations on all patterns of lengths, several of them in flight; odd ranks wait in the
/// opposite order. Returns the first that gave other bytes than the loops, or "". Collective.
inline std::string wrong_operation(Communicator& group) {
  std::string wrong;
  std::uint64_t seed = 100;
  for (const Lengths& lengths : length_patterns(group.size())) {
    std::vector<Expected> all;
    all.reserve(16);
    all.push_back(gather_case(group, lengths, false, ++seed));
    all.push_back(exchange_case(group, lengths, ++seed));
    all.push_back(reduce_case(group, lengths, ++seed, wrong));
    for (auto& one : ring_cases(group, lengths, seed += 10)) all.push_back(std::move(one));
    all.push_back(gather_case(group, lengths, true, ++seed));
    all.push_back(reduce_case(group, lengths, ++seed, wrong));
    for (std::size_t i = 0; i < all.size(); ++i) {
      Expected& one = all[group.rank() % 2 ? all.size() - 1 - i : i];
      one.pending.wait();
      if (one.into != one.expected && wrong.empty()) wrong = one.title;
    }
  }
  return wrong;
}

}  // namespace troupe::test
