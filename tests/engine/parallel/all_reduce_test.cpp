#include "engine/parallel/all_reduce.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "engine/base/errors/error.h"
#include "engine/base/random/random.h"
#include "tests/support/on_ranks.h"

namespace troupe::engine::parallel {
namespace {

using test::on_ranks;

/// Input of rank `rank`: values of very different magnitudes, so that another order of summation
/// gives other bits.
template <class T>
std::vector<T> values_of(int rank, std::size_t n) {
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double u = uniform(7, rank, i);
    values[i] = static_cast<T>((u - 0.5) * std::pow(10.0, static_cast<double>((i + rank) % 7)));
  }
  return values;
}

/// The oracle: one loop over the ranks in their order.
template <class T>
std::vector<T> sum_in_order(int ranks, std::size_t n) {
  std::vector<T> total = values_of<T>(0, n);
  for (int r = 1; r < ranks; ++r) {
    const auto next = values_of<T>(r, n);
    for (std::size_t i = 0; i < n; ++i) total[i] = total[i] + next[i];
  }
  return total;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

TEST(Reduce, SumIsTheLoopOverTheRanksInTheirOrder) {
  for (const int ranks : {1, 2, 3, 4, 5, 8})
    for (const std::size_t n : {0, 1, 3, 7, 4095, 4096, 4097, 10001}) {
      const auto expected = sum_in_order<float>(ranks, n);
      const auto expected_wide = sum_in_order<double>(ranks, n);
      on_ranks(ranks, [&](Communicator& group) {
        auto values = values_of<float>(group.rank(), n);
        all_reduce_sum(group, std::span(values), "a test's sum");
        EXPECT_TRUE(same_bits(values, expected))
            << "rank " << group.rank() << " of " << ranks << ", " << n << " floats";
        auto wide = values_of<double>(group.rank(), n);
        all_reduce_sum(group, std::span(wide), "a test's sum of doubles");
        EXPECT_TRUE(same_bits(wide, expected_wide))
            << "rank " << group.rank() << " of " << ranks << ", " << n << " doubles";
      });
    }
}

TEST(Reduce, SumOfMillionsGoesInPiecesAndGivesTheSameBits) {
  for (const std::size_t n : {std::size_t{1000000}, (std::size_t{1} << 20) + 5}) {
    const auto expected = sum_in_order<float>(3, n);
    on_ranks(3, [&](Communicator& group) {
      auto values = values_of<float>(group.rank(), n);
      all_reduce_sum(group, std::span(values), "a long sum");
      EXPECT_TRUE(same_bits(values, expected)) << n;
    });
  }
}

TEST(Reduce, TheOrderOfSummationShowsInTheBits) {
  // Otherwise the tests above could not fail.
  auto backwards = values_of<float>(3, 1000);
  for (int r = 2; r >= 0; --r) {
    const auto next = values_of<float>(r, 1000);
    for (std::size_t i = 0; i < next.size(); ++i) backwards[i] += next[i];
  }
  EXPECT_FALSE(same_bits(backwards, sum_in_order<float>(4, 1000)));
}

TEST(Reduce, MaxTakesTheLargestAndKeepsNan) {
  for (const std::size_t n : {std::size_t{5}, std::size_t{9000}})
    on_ranks(4, [&](Communicator& group) {
      std::vector<float> values(n, -static_cast<float>(group.rank()) - 1);
      values[1] = static_cast<float>(group.rank());
      if (group.rank() == 1) values[2] = std::numeric_limits<float>::quiet_NaN();
      values[3] = group.rank() == 2 ? std::numeric_limits<float>::infinity() : 0;
      all_reduce_max(group, values, "a test's maximum");
      EXPECT_EQ(values[0], -1);
      EXPECT_EQ(values[1], 3);
      EXPECT_TRUE(std::isnan(values[2]));
      EXPECT_EQ(values[3], std::numeric_limits<float>::infinity());
      EXPECT_EQ(values[n - 1], -1);
    });
}

TEST(Gather, StringsOfAnyLengthComeByRank) {
  for (const int ranks : {1, 2, 5})
    on_ranks(ranks, [&](Communicator& group) {
      const auto of = [](int rank) {
        return std::string(rank * 1000 % 3001, static_cast<char>('a' + rank));
      };  // rank 0 gives nothing
      const auto all = gather_strings(group, of(group.rank()), "uneven strings");
      ASSERT_EQ(all.size(), static_cast<std::size_t>(ranks));
      for (int r = 0; r < ranks; ++r) EXPECT_EQ(all[r], of(r));
      const auto even = gather_strings(group, std::string(2, static_cast<char>('A' + group.rank())),
                                       "even strings");
      for (int r = 0; r < ranks; ++r)
        EXPECT_EQ(even[r], std::string(2, static_cast<char>('A' + r)));
      EXPECT_EQ(gather_strings(group, "", "empty strings"), std::vector<std::string>(ranks));
    });
}

TEST(Gather, MoreThanTheBoundIsRefusedOnEveryRank) {
  on_ranks(3, [&](Communicator& group) {
    const std::string mine(group.rank() == 1 ? 90 : 20, 'x');
    EXPECT_EQ(gather_strings(group, mine, "just enough", 130).size(), 3u);
    try {
      gather_strings(group, mine, "words of the ranks", 129);
      ADD_FAILURE() << "the bound was not kept";
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.error().code, Errc::full);
      EXPECT_THAT(failure.what(), ::testing::HasSubstr("'words of the ranks'"));
    }
    barrier(group, "the group lives");
  });
}

TEST(Gather, FloatsOfUnevenLengthsComeOneAfterTheOther) {
  on_ranks(4, [&](Communicator& group) {
    std::vector<float> expected;
    for (int r = 0; r < 4; ++r) expected.insert(expected.end(), r, static_cast<float>(r));
    const std::vector<float> mine(group.rank(), static_cast<float>(group.rank()));
    EXPECT_EQ(gather_floats(group, mine, "uneven floats"), expected);
    EXPECT_EQ(gather_floats(group, {}, "no floats"), std::vector<float>());
  });
}

}  // namespace
}  // namespace troupe::engine::parallel
