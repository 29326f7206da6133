// Ranges of pages: which are allocated, how neighbors are merged, and what is returned to the
// system.
#include "engine/ops/memory/page_arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "engine/base/random/random.h"

namespace troupe::engine::ops::cpu {
namespace {

constexpr std::size_t arena_mib = std::size_t{1} << 20;

TEST(PageArena, FreeNeighboursServeALargerRange) {
  PageArena arena;
  std::byte *a = arena.take(arena_mib), *b = arena.take(2 * arena_mib), *c = arena.take(arena_mib);
  arena.give_back(a, arena_mib);
  arena.give_back(c, arena_mib);
  arena.give_back(b, 2 * arena_mib);
  EXPECT_EQ(arena.warm(), 4 * arena_mib);
  EXPECT_EQ(arena.take(4 * arena_mib), a);
  EXPECT_EQ(arena.warm(), 0u);
  arena.give_back(a, 4 * arena_mib);
}

TEST(PageArena, ARangeLiesWhereTheFewestFreshPagesAreNeeded) {
  PageArena arena;
  std::byte *small = arena.take(arena_mib), *wall = arena.take(arena_mib),
            *large = arena.take(3 * arena_mib), *other = arena.take(arena_mib),
            *last = arena.take(arena_mib);
  arena.give_back(small, arena_mib);
  arena.give_back(large, 3 * arena_mib);
  arena.give_back(last, arena_mib);
  EXPECT_EQ(arena.take(arena_mib), last)
      << "of those that fit exactly the one that was in use last";
  EXPECT_EQ(arena.take(arena_mib), small) << "a whole piece before a part of a larger one";
  EXPECT_EQ(arena.take(2 * arena_mib), large) << "pages that are there before fresh ones";
  EXPECT_EQ(arena.warm(), arena_mib);
  arena.give_back(last, arena_mib);
  EXPECT_EQ(arena.take(2 * arena_mib), last) << "some fresh pages behind what is there";
  for (std::byte* one : {small, wall, other}) arena.give_back(one, arena_mib);
  for (std::byte* two : {large, last}) arena.give_back(two, 2 * arena_mib);
}

TEST(PageArena, WhatWasLongestUnusedGoesBackFirst) {
  PageArena arena;
  std::byte *old = arena.take(2 * arena_mib), *wall = arena.take(arena_mib),
            *young = arena.take(2 * arena_mib);
  for (std::byte* range : {old, young}) std::memset(range, 7, 2 * arena_mib);
  arena.give_back(old, 2 * arena_mib);
  arena.give_back(young, 2 * arena_mib);
  arena.release(3 * arena_mib);
  EXPECT_EQ(arena.warm(), 3 * arena_mib);
  EXPECT_EQ(old[0], std::byte{0}) << "a page that is fresh";
  EXPECT_EQ(young[0], std::byte{7});
  arena.release(0);
  EXPECT_EQ(arena.warm(), 0u);
  EXPECT_EQ(young[0], std::byte{0});
  arena.give_back(wall, arena_mib);
}

struct Range {
  std::byte* data;
  std::size_t bytes;
};

TEST(PageArena, RangesInUseKeepTheirValuesWhateverHappensAroundThem) {
  PageArena arena;
  std::vector<Range> used;
  std::size_t bytes_used = 0, maximum = 0;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const Range range{nullptr, PageArena::page * (1 + uniform_below(60, 1, 0, i))};
    used.push_back({arena.take(range.bytes), range.bytes});
    std::memset(used.back().data, static_cast<int>(i % 251), range.bytes);
    std::memcpy(used.back().data, &i, sizeof i);
    maximum = std::max(maximum, bytes_used += range.bytes);
    while (used.size() > uniform_below(40, 2, 0, i)) {
      const std::size_t at = uniform_below(used.size(), 3, used.size(), i);
      const Range gone = used[at];
      std::uint64_t number = 0;
      std::memcpy(&number, gone.data, sizeof number);
      ASSERT_EQ(gone.data[gone.bytes - 1], static_cast<std::byte>(number % 251)) << i;
      arena.give_back(gone.data, gone.bytes);
      used.erase(used.begin() + static_cast<std::ptrdiff_t>(at));
      bytes_used -= gone.bytes;
    }
    arena.release(maximum - bytes_used);
    ASSERT_LE(arena.warm() + bytes_used, maximum);
  }
  for (const Range& range : used) arena.give_back(range.data, range.bytes);
}

}  // namespace
}  // namespace troupe::engine::ops::cpu
