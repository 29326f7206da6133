// The thread pool: each item once, no loop mixed with another.
#include "engine/ops/cpu/context/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <new>
#include <system_error>

#include "engine/ops/cpu/instruction_peak.h"
#include "tests/support/sanitized.h"

namespace troupe::engine::ops::cpu {
namespace {

TEST(ThreadPool, RunsEveryItemOfEveryLoopOnce) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (int loop = 0; loop < 2000; ++loop) {
      const int count = loop % 7;
      std::vector<std::atomic<int>> seen(7);
      pool.run(count, [&](std::int64_t item, int worker) {
        EXPECT_LT(worker, threads);
        seen[static_cast<std::size_t>(item)].fetch_add(1);
      });
      for (int item = 0; item < 7; ++item)
        ASSERT_EQ(seen[static_cast<std::size_t>(item)].load(), item < count ? 1 : 0);
    }
  }
}

TEST(ThreadPool, EachThreadBeginsWithItsOwnSlice) {
  for (const int threads : {2, 3, 4}) {
    ThreadPool pool(threads);
    for (const std::int64_t count : {threads, 7, 64}) {
      std::vector<std::int64_t> first(static_cast<std::size_t>(threads), -1);
      std::atomic<int> came = 0;
      pool.run(count, [&](std::int64_t item, int worker) {
        auto& own = first[static_cast<std::size_t>(worker)];
        if (own != -1) return;
        own = item;
        for (++came; came < threads;) std::this_thread::yield();  // waits until all have begun
      });
      for (int worker = 0; worker < threads; ++worker)
        EXPECT_EQ(first[static_cast<std::size_t>(worker)], pool.slice(count, worker).begin)
            << worker << " of " << threads;
    }
  }
}

TEST(ThreadPool, SlicesAreAllItemsInOrder) {
  const ThreadPool pool(3);
  for (const std::int64_t count : {0, 1, 2, 3, 100, 2147483647}) {
    EXPECT_EQ(pool.slice(count, 0).begin, 0);
    for (int worker = 0; worker < 2; ++worker)
      EXPECT_EQ(pool.slice(count, worker).end, pool.slice(count, worker + 1).begin);
    EXPECT_EQ(pool.slice(count, 2).end, count);
  }
}

TEST(ThreadPool, AThreadThatIsLateLosesItsItemsToOthers) {
  ThreadPool pool(2);
  constexpr std::int64_t count = 100;
  for (const std::int64_t slow : {std::int64_t{0}, pool.slice(count, 1).begin}) {
    std::atomic<std::int64_t> others = 0;
    pool.run(count, [&](std::int64_t item, int) {
      if (item != slow)
        ++others;
      else
        while (others < count - 1)
          std::this_thread::yield();  // keeps its item until all others are done
    });
    EXPECT_EQ(others, count - 1);
  }
}

TEST(ThreadPool, EndsWithoutHavingWorked) {
  for (int i = 0; i < 20; ++i) ThreadPool pool(3);
}

TEST(ThreadPool, PinsItsThreadsWhereThereAreAsManyProcessorsAndTheCallerNever) {
  const int all = usable_processors();
  for (const int threads : {all, all + 1}) {
    ThreadPool pool(threads, true);
    std::vector<std::atomic<int>> found(static_cast<std::size_t>(threads));
    std::atomic<int> came = 0;
    pool.run(threads, [&](std::int64_t, int worker) {
      found[static_cast<std::size_t>(worker)] = usable_processors();
      for (++came; came < threads;) std::this_thread::yield();  // so that each thread takes one
    });
    EXPECT_EQ(found[0], all);
    for (int worker = 1; worker < threads; ++worker)
      EXPECT_EQ(found[static_cast<std::size_t>(worker)], threads == all ? 1 : all);
  }
  EXPECT_EQ(usable_processors(), all);
}

TEST(ThreadPool, ThrowsTheFirstExceptionOfItsThreadsWhenAllHaveEnded) {
  ThreadPool pool(3);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> done{0};
    const auto run = [&](int bad) {
      pool.run(50, [&](std::int64_t item, int) {
        if ((item + 1) % bad == 0) throw std::bad_alloc();
        ++done;
      });
    };
    EXPECT_THROW(run(7), std::bad_alloc);
    EXPECT_EQ(done.load(), 43) << "the other items";
    run(51);
    EXPECT_EQ(done.load(), 43 + 50);
  }
}

TEST(InstructionPeak, AThreadThatCannotStartIsAnErrorAndEndsThoseThatWaitForIt) {
#ifdef TROUPE_SANITIZED
  GTEST_SKIP() << "a sanitizer needs terabytes of address space";
#endif
  const auto measure = [] {
    ::alarm(60);
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit{};
    ::getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + (100u << 20);
    ::setrlimit(RLIMIT_AS, &limit);  // the stacks of some of the threads
    try {
      InstructionPeak(200, Precision::f32).measure(10);
    } catch (const std::system_error&) {
      std::_Exit(0);
    }
    std::_Exit(1);
  };
  EXPECT_EXIT(measure(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace troupe::engine::ops::cpu
