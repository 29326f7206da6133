// on_ranks(): runs a test's function on every rank of a group of threads. The first rank that
// throws ends the group, and its message is returned.
#pragma once

#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "engine/parallel/one_rank.h"
#include "engine/parallel/thread_group.h"

namespace troupe::test {

template <class Work>
void on_ranks(int ranks, const Work& work,
              engine::parallel::ThreadGroupOptions options = {
                  .deadline = std::chrono::seconds(60)}) {
  engine::parallel::ThreadGroup group(ranks, options);
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, own = std::shared_ptr(group.rank(r))]() mutable {
      try {
        work(*own);
      } catch (const std::exception& e) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
        own->abort(e.what());
      }
      own.reset();
    });
  for (auto& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace troupe::test
