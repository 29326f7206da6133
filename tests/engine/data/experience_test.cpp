// A batch cut and packed anew keeps every column of every sequence. The columns are found by
// fields(), so that a new one is tried, too.
#include "engine/data/experience.h"

#include <gtest/gtest.h>

#include <type_traits>

#include "engine/base/errors/check.h"

namespace troupe::engine::data {
namespace {

template <class T>
constexpr bool is_column = false;
template <class T>
constexpr bool is_column<std::vector<T>> = true;

/// visit(column) for every vector of a batch but its offsets and tokens, which have rules of their
/// own.
template <class Visit>
void each_column(Experience& b, const Visit& visit) {
  const auto one = [&](auto& member) {
    if constexpr (is_column<std::remove_cvref_t<decltype(member)>>) {
      if (static_cast<void*>(&member) != &b.offsets && static_cast<void*>(&member) != &b.tokens)
        visit(member);
    }
  };
  std::apply([&](auto&... members) { (one(members), ...); }, fields(b));
}

bool valid(const Experience& b) {
  try {
    b.validate(100);
    return true;
  } catch (const Bug&) {
    return false;
  }
}

/// Three sequences of 4, 1 and 2 tokens without columns.
Experience bare() {
  Experience b;
  b.append({1, 2, 3, 4}, {1, 1, 1, 1});
  b.append({5}, {1});
  b.append({6, 7}, {1, 1});
  b.mask.clear();
  return b;
}

/// Every column has numbers of its own, as long as validate() wants it.
Experience full() {
  Experience b = bare();
  b.sequences_per_group = 1;
  b.count = 7;
  b.scale = 3;
  int number = 0;
  each_column(b, [&](auto& column) {
    column.resize(b.tokens.size());
    if (!valid(b)) column.resize(static_cast<std::size_t>(b.sequences()));
    for (auto& value : column)
      value = static_cast<std::remove_reference_t<decltype(value)>>(++number);
  });
  return b;
}

/// Sequence n of one batch is sequence m of another, to the last column.
void expect_same(Experience& a, std::size_t n, Experience& b, std::size_t m) {
  const auto range = [](const Experience& of, std::size_t i, const auto& column) {
    const bool by_token = column.size() == of.tokens.size();
    const auto begin = by_token ? of.offsets[i] : static_cast<std::int32_t>(i),
               end = by_token ? of.offsets[i + 1] : begin + 1;
    return std::vector(column.begin() + begin, column.begin() + end);
  };
  EXPECT_EQ(range(a, n, a.tokens), range(b, m, b.tokens));
  std::vector<std::vector<double>> left, right;
  each_column(a, [&](auto& column) {
    const auto part = range(a, n, column);
    left.emplace_back(part.begin(), part.end());
  });
  each_column(b, [&](auto& column) {
    const auto part = range(b, m, column);
    right.emplace_back(part.begin(), part.end());
  });
  EXPECT_EQ(left, right);
}

TEST(Experience, EveryColumnIsOneOfTokensOrOneOfSequences) {
  Experience b = bare();
  int columns = 0;
  each_column(b, [&](auto& column) {
    const auto fits = [&](std::size_t length) {
      column.resize(length);
      return valid(b);
    };
    EXPECT_NE(fits(7), fits(3)) << "column " << columns << " is not checked";
    EXPECT_FALSE(fits(6));
    EXPECT_TRUE(fits(0));
    ++columns;
  });
  EXPECT_GE(columns, 14);
}

TEST(Experience, ASelectionHasAllColumnsOfItsSequences) {
  Experience b = full();
  ASSERT_TRUE(valid(b));
  Experience chosen = b.select({2, 0, 2, 1});
  ASSERT_TRUE(valid(chosen));
  EXPECT_EQ(chosen.offsets, (std::vector<std::int32_t>{0, 2, 6, 8, 9}));
  std::size_t m = 0;
  for (const std::size_t n : {2, 0, 2, 1}) expect_same(b, n, chosen, m++);
  EXPECT_EQ(chosen.count, 7);
  EXPECT_EQ(chosen.scale, 3);
}

TEST(Experience, AnAppendedBatchKeepsAllColumnsOfBoth) {
  Experience b = full();
  Experience joined = b.slice(0, 1);
  joined.append(b.slice(1, 3));
  ASSERT_TRUE(valid(joined));
  for (std::size_t n = 0; n < 3; ++n) expect_same(b, n, joined, n);
  Experience first;
  first.append(b);
  for (std::size_t n = 0; n < 3; ++n) expect_same(b, n, first, n);
  EXPECT_THROW(joined.append(bare()), Bug) << "columns are missing";
}

TEST(Experience, ASliceHasAllColumnsOfItsSequences) {
  Experience b = full(), end = b.slice(1, 3), none = b.slice(1, 1);
  ASSERT_TRUE(valid(end));
  expect_same(b, 1, end, 0);
  expect_same(b, 2, end, 1);
  EXPECT_EQ(none.sequences(), 0);
  EXPECT_EQ(end.count, 7) << "of the whole";
}

TEST(Experience, ColumnsThatNobodyFilledStayEmpty) {
  Experience b = bare(), part = b.slice(0, 2);
  each_column(part, [](auto& column) { EXPECT_TRUE(column.empty()); });
}

TEST(Experience, MicroBatchesAreWholeUnitsWithinTheBudget) {
  Experience b;
  for (const int length : {3, 4, 2, 9, 1, 1})
    b.append(std::vector<std::int32_t>(static_cast<std::size_t>(length)),
             std::vector<float>(static_cast<std::size_t>(length)));
  EXPECT_EQ(micro_batches(b, 7), (std::vector<std::int32_t>{0, 2, 3, 4, 6}))
      << "the longest stands alone";
  b.sequences_per_group = 2;
  EXPECT_EQ(micro_batches(b, 7), (std::vector<std::int32_t>{0, 2, 4, 6}));
  EXPECT_EQ(micro_batches(b, 100), (std::vector<std::int32_t>{0, 6}));
}

}  // namespace
}  // namespace troupe::engine::data
