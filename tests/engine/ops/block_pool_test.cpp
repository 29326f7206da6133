// The pool of a device's memory: what is reused, what is held, and what is returned to the system.
#include "engine/ops/memory/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <thread>

#include "engine/base/errors/error.h"
#include "engine/base/random/random.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops::cpu {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

TEST(BlockPool, ABlockServesTheNextTensorOfItsSize) {
  BlockPool pool(true);
  const auto first = pool.take(5 * mib);
  pool.give_back(first);
  const auto second = pool.take(5 * mib - 100);
  EXPECT_EQ(second.data, first.data);
  EXPECT_GE(second.bytes, 5 * mib - 100);
  pool.give_back(second);
}

TEST(BlockPool, EveryBlockHasRoomAndIsAligned) {
  BlockPool pool(true);
  for (const std::size_t bytes : {0u, 1u, 63u, 64u, 65u, 127u, 129u, 1000u, 4097u, 100'000u,
                                  5'000'001u, 33'554'432u, 33'554'433u})
    for (int again = 0; again < 2; ++again) {
      const auto block = pool.take(bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data) % 64, 0u) << bytes;
      EXPECT_GE(block.bytes, bytes);
      EXPECT_LE(block.bytes, bytes + bytes / 4 + 64) << bytes;
      if (block.bytes > 0) std::memset(block.data, 1, block.bytes);
      pool.give_back(block);
    }
}

TEST(BlockPool, TwoBlocksInUseNeverOverlap) {
  BlockPool pool(true);
  std::deque<BlockPool::Block> taken;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto block = pool.take(uniform_below(300'000, 1, 0, i));
    for (const auto& other : taken)
      ASSERT_TRUE(block.data + block.bytes <= other.data || other.data + other.bytes <= block.data);
    taken.push_back(block);
    while (taken.size() > uniform_below(20, 2, 0, i)) {
      pool.give_back(taken.front());
      taken.pop_front();
    }
    const MemoryUse use = pool.use();
    ASSERT_LE(use.now, use.held);
    ASSERT_LE(use.held, use.peak + BlockPool::slack);
  }
  for (const auto& block : taken) pool.give_back(block);
  EXPECT_EQ(pool.use().now, 0u);
}

TEST(BlockPool, NoMoreIsHeldThanWasEverInUseAtOnce) {
  BlockPool pool(true);
  for (const std::size_t size : {8 * mib, 4 * mib, 2 * mib, 1 * mib, 3 * mib, 7 * mib}) {
    pool.give_back(pool.take(size));
    EXPECT_LE(pool.use().held, 8 * mib + BlockPool::slack);
  }
  EXPECT_EQ(pool.use().peak, 8 * mib);
}

TEST(BlockPool, FreeBlocksServeALargerOne) {
  BlockPool pool(true);
  const auto first = pool.take(4 * mib), second = pool.take(2 * mib);
  pool.give_back(first);
  pool.give_back(second);
  const auto both = pool.take(6 * mib);
  EXPECT_EQ(both.data, first.data);
  EXPECT_EQ(pool.use().held, 6 * mib);
  pool.give_back(both);
}

TEST(BlockPool, SmallBlocksThatWaitStayWithinTheirBound) {
  BlockPool pool(true);
  std::vector<BlockPool::Block> blocks;
  for (const std::size_t size : {60'000u, 50'000u, 40'000u}) {
    for (int i = 0; i < 60; ++i) blocks.push_back(pool.take(size));
    for (const auto& block : blocks) pool.give_back(block);
    blocks.clear();
    EXPECT_LE(pool.use().held, BlockPool::slack);
  }
  EXPECT_EQ(pool.use().peak, 60u * 61'440);
  for (int i = 0; i < 200; ++i) blocks.push_back(pool.take(60'000));
  for (const auto& block : blocks) pool.give_back(block);
  EXPECT_LE(pool.use().held, BlockPool::slack);
}

TEST(BlockPool, PagesWaitForTheNextStepWhileSmallBlocksTakeTurns) {
  BlockPool pool(true);
  const auto logits = pool.take(2 * mib);
  std::fill_n(logits.data, logits.bytes, std::byte{7});
  pool.give_back(logits);
  std::vector<BlockPool::Block> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back(pool.take(50'000));
  for (const auto& block : blocks) pool.give_back(block);
  const auto again = pool.take(2 * mib);
  EXPECT_EQ(again.data, logits.data);
  EXPECT_EQ(std::count(again.data, again.data + again.bytes, std::byte{7}),
            static_cast<std::ptrdiff_t>(2 * mib));  // a fresh page is zeros
  pool.give_back(again);
}

TEST(BlockPool, AVeryLargeBlockGoesBackAtOnce) {
  BlockPool pool(true);
  const auto block = pool.take(BlockPool::max_kept + 1);
  EXPECT_EQ(pool.use().held, BlockPool::max_kept + 1);
  pool.give_back(block);
  EXPECT_EQ(pool.use().held, 0u);
  EXPECT_EQ(pool.use().peak, BlockPool::max_kept + 1);
}

TEST(BlockPool, WithoutReuseItHoldsWhatIsInUse) {
  BlockPool pool(false);
  const auto block = pool.take(1000);
  EXPECT_EQ(pool.use().held, 1000u);
  pool.give_back(block);
  EXPECT_EQ(pool.use().held, 0u);
}

TEST(BlockPool, BlocksMayComeBackFromOtherThreads) {
  BlockPool pool(true);
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&pool, thread] {
      for (std::uint64_t i = 0; i < 500; ++i) {
        const auto block = pool.take(1 + uniform_below(50'000, 3, thread, i));
        block.data[0] = std::byte{1};
        std::thread([&pool, block] { pool.give_back(block); }).join();
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(pool.use().now, 0u);
  EXPECT_LE(pool.use().held, BlockPool::slack);
}

TEST(BlockPool, WhatCanNeverFitIsRefusedAndChangesNothing) {
  BlockPool pool(true);
  EXPECT_THROW((void)pool.take(std::size_t{1} << 52), Failure);
  EXPECT_EQ(pool.use().peak, 0u);
}

TEST(BlockPool, ATensorMayOutliveItsDevice) {
  auto device = make_cpu_device({.threads = 1});
  Tensor x = device->empty({1 << 20});
  device->fill(x, 3);
  device.reset();
  const auto other = make_cpu_device({.threads = 1});
  EXPECT_EQ(to_host(*other, x)[99], 3);
}

}  // namespace
}  // namespace troupe::engine::ops::cpu
