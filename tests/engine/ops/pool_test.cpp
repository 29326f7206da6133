// The thread pool: each item once, no loop mixed with another.
#include "engine/ops/cpu/pool.h"

#include <gtest/gtest.h>

namespace troupe::engine::ops {
namespace {

TEST(Pool, RunsEveryItemOfEveryLoopOnce) {
  for (const int threads : {1, 2, 4}) {
    Pool pool(threads);
    for (int loop = 0; loop < 2000; ++loop) {
      const int count = loop % 7;
      std::vector<std::atomic<int>> seen(7);
      pool.run(count, [&](std::int64_t item, int worker) {
        EXPECT_LT(worker, threads);
        seen[static_cast<std::size_t>(item)].fetch_add(1);
      });
      for (int item = 0; item < 7; ++item) ASSERT_EQ(seen[static_cast<std::size_t>(item)].load(), item < count ? 1 : 0);
    }
  }
}

TEST(Pool, EndsWithoutHavingWorked) {
  for (int i = 0; i < 20; ++i) Pool pool(3);
}

TEST(Pool, PinsItsThreadsWhereThereAreAsManyProcessorsAndTheCallerNever) {
  const int all = usable_processors();
  for (const int threads : {all, all + 1}) {
    Pool pool(threads, true);
    std::vector<std::atomic<int>> found(static_cast<std::size_t>(threads));
    std::atomic<int> came = 0;
    pool.run(threads, [&](std::int64_t, int worker) {
      found[static_cast<std::size_t>(worker)] = usable_processors();
      for (++came; came < threads;) std::this_thread::yield();  // so that each thread takes one
    });
    EXPECT_EQ(found[0], all);
    for (int worker = 1; worker < threads; ++worker) EXPECT_EQ(found[static_cast<std::size_t>(worker)], threads == all ? 1 : all);
  }
  EXPECT_EQ(usable_processors(), all);
}

}  // namespace
}  // namespace troupe::engine::ops
