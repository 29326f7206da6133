// A few threads that share out the items of one loop at a time. Workers spin for a moment between
// loops, then sleep. Each begins with a slice of its own, the same part of every loop, so that it
// finds in its caches what it wrote in the loop before: a line that another cache complex holds
// takes six times as long (docs/decisions/0012). Then it takes what others have left. So which
// thread takes which item is left to chance: items must not depend on each other, nor on who runs
// them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/processors.h"

namespace troupe::engine::ops {

class Pool {
 public:
  /// `pinned`: every thread but the caller's stays on a processor of its own, where there are as
  /// many that this process may use as threads (pins()); elsewhere they would be in the way of
  /// others.
  explicit Pool(int threads, bool pinned = false);
  ~Pool();
  int threads() const { return static_cast<int>(next_.size()); }
  static bool pins(int threads) { return usable_processors() == threads; }

  /// Items of a loop of `count` that worker begins with.
  struct Slice {
    std::int64_t begin, end;
  };
  Slice slice(std::int64_t count, int worker) const {
    return {worker * count / threads(), (worker + 1) * count / threads()};
  }

  /// Calls visit(item, worker) for items 0 .. count-1; worker < threads() tells the caller's
  /// scratch memory apart. Returns when all are done. One loop at a time, from one thread. `visit`
  /// must not throw.
  template <class Visit>
  void run(std::int64_t count, Visit&& visit) {
    if (count <= 1 || threads() == 1) {
      for (std::int64_t item = 0; item < count; ++item) visit(item, 0);
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
  bool take(int worker);
  bool take_from(int owner, int worker, std::uint64_t loop);
  std::uint64_t wait_for_other(std::uint64_t loop);

  // One a slice. The upper half numbers the loop, the lower half is the slice's next item: a thread
  // that comes late cannot take an item of another loop than the one whose call it has read.
  std::vector<std::atomic<std::uint64_t>> next_;
  std::atomic<std::int64_t> count_{0};
  std::atomic<Call> call_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> stop_{false};
  std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::thread> workers_;
};

}  // namespace troupe::engine::ops
