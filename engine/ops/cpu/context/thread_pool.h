// ThreadPool: threads that divide the items of one loop at a time. Workers spin briefly between
// loops, then sleep. Each thread starts with its own slice, the same part of every loop, so that
// its caches hold what it wrote in the previous loop: a line in another cache complex takes six
// times as long (docs/decisions/0012). Then it steals items from other slices. So the assignment of
// items to threads is not deterministic: items must not depend on each other, nor on the thread
// that runs them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/environment/processors.h"
#include "engine/base/threads/progress.h"

namespace troupe::engine::ops::cpu {

class ThreadPool {
 public:
  /// `pinned`: pins every thread but the caller's to a processor of its own, if the process may use
  /// as many processors as there are threads (pins()).
  explicit ThreadPool(int threads, bool pinned = false);
  ~ThreadPool();
  int threads() const { return static_cast<int>(next_.size()); }
  static bool pins(int threads) { return usable_processors() == threads; }

  /// Items of a loop of `count` that a worker starts with.
  struct Slice {
    std::int64_t begin, end;
  };
  Slice slice(std::int64_t count, int worker) const {
    return {worker * count / threads(), (worker + 1) * count / threads()};
  }

  /// Calls visit(item, worker) for items 0 .. count - 1, with worker < threads(). Returns when all
  /// are done. One loop at a time, from one thread. If `visit` throws on several threads, the other
  /// items still run, and the first exception is thrown at the end: out of memory.
  template <class Visit>
  void run(std::int64_t count, Visit&& visit) {
    if (count <= 1 || threads() == 1) {
      for (std::int64_t item = 0; item < count; ++item) {
        visit(item, 0);
        progress::advance();
      }
    } else {
      share(
          count,
          [](void* context, std::int64_t item, int worker) {
            (*static_cast<std::remove_reference_t<Visit>*>(context))(item, worker);
          },
          &visit);
    }
  }

 private:
  using Call = void (*)(void*, std::int64_t, int);
  void share(std::int64_t count, Call call, void* context);
  void work(int worker);
  void end();
  void wait_for_items(std::uint64_t count) const;
  bool take(int worker);
  bool take_from(int owner, int worker, std::uint64_t loop);
  std::uint64_t wait_for_other(std::uint64_t loop);
  void keep_exception();
  [[noreturn]] void rethrow();

  // One per slice. The upper half is the number of the loop, the lower half the next item of the
  // slice: a late thread cannot take an item of a loop other than the one whose call it has read.
  std::vector<std::atomic<std::uint64_t>> next_;
  std::atomic<std::int64_t> count_{0};
  std::atomic<Call> call_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> stop_{false};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> failed_{false};
  std::exception_ptr exception_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::thread> workers_;
};

}  // namespace troupe::engine::ops::cpu
