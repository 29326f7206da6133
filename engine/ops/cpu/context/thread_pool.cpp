#include "engine/ops/cpu/context/thread_pool.h"

#include <algorithm>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::engine::ops::cpu {
namespace {

// About 150 microseconds: longer than the gaps between the kernels of a step.
constexpr int spins = 6000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads, bool pinned)
    : next_(static_cast<std::size_t>(std::max(threads, 1))) {
  check(threads >= 1 && threads <= 1024, "ThreadPool: number of threads");
  const bool pin = pinned && pins(threads);
  try {
    workers_.reserve(next_.size());
    for (int worker = 1; worker < threads; ++worker) {
      workers_.emplace_back([this, worker, pin] {
        if (pin) pin_to_processor(worker);
        work(worker);
      });
    }
  } catch (...) {
    end();  // those that were started
    throw;
  }
}

ThreadPool::~ThreadPool() {
  end();
}

void ThreadPool::end() {
  stop_.store(true);
  { const std::lock_guard lock(mutex_); }
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::share(std::int64_t count, Call call, void* context) {
  check(count < (std::int64_t{1} << 31), "ThreadPool: too many items");
  // Closes the previous loop before the new call is written: a thread that reads any of the new
  // fields also sees it closed.
  const std::uint64_t loop = next_[0].load(std::memory_order_relaxed) >> 32;
  for (auto& next : next_) next.store((loop + 1) << 32 | 0xffffffffU, std::memory_order_release);
  call_.store(call, std::memory_order_release);
  context_.store(context, std::memory_order_release);
  count_.store(count, std::memory_order_release);
  done_.store(0, std::memory_order_relaxed);
  // The first slice is opened last: a thread that sees it open finds its own slice open.
  for (int owner = threads() - 1; owner >= 0; --owner)
    next_[static_cast<std::size_t>(owner)].store(
        (loop + 2) << 32 | static_cast<std::uint64_t>(slice(count, owner).begin));
  if (sleepers_.load() > 0) {
    { const std::lock_guard lock(mutex_); }
    wake_.notify_all();
  }
  while (take(0)) {
  }
  for (int spin = 0; done_.load(std::memory_order_acquire) < static_cast<std::uint64_t>(count);
       ++spin) {
    if (spin == spins) {
      wait_for_items(static_cast<std::uint64_t>(count));
      break;
    }
    pause();
  }
  if (failed_.load(std::memory_order_relaxed)) rethrow();
}

/// Waits for the items of other threads. Their progress is that of the caller.
void ThreadPool::wait_for_items(std::uint64_t count) const {
  progress::counters.waits_for.store(this, std::memory_order_relaxed);
  std::uint64_t before = 0, done = 0;
  while ((done = done_.load(std::memory_order_acquire)) < count) {
    if (done != std::exchange(before, done)) progress::advance();
    std::this_thread::yield();
  }
  progress::counters.waits_for.store(nullptr, std::memory_order_relaxed);
}

void ThreadPool::keep_exception() {
  const std::lock_guard lock(mutex_);
  if (!exception_) exception_ = std::current_exception();
  failed_.store(true, std::memory_order_relaxed);  // published with done_
}

void ThreadPool::rethrow() {
  failed_.store(false, std::memory_order_relaxed);
  std::rethrow_exception(std::exchange(exception_, nullptr));
}

bool ThreadPool::take(int worker) {
  // Takes items of the loop of its own slice only: a thread that found its own slice closed and
  // another one open would start with the other slice.
  const std::uint64_t loop =
      next_[static_cast<std::size_t>(worker)].load(std::memory_order_acquire) >> 32;
  for (int turn = 0; turn < threads(); ++turn)
    if (take_from((worker + turn) % threads(), worker, loop)) return true;
  return false;
}

bool ThreadPool::take_from(int owner, int worker, std::uint64_t loop) {
  auto& next = next_[static_cast<std::size_t>(owner)];
  std::uint64_t at = next.load(std::memory_order_acquire);
  while (at >> 32 == loop) {
    const auto item = static_cast<std::int64_t>(at & 0xffffffffU);
    const Call call = call_.load(std::memory_order_acquire);
    void* context = context_.load(std::memory_order_acquire);
    if (item >= slice(count_.load(std::memory_order_acquire), owner).end) return false;
    if (!next.compare_exchange_weak(at, at + 1, std::memory_order_acq_rel)) continue;
    progress::counters.in_item.store(1, std::memory_order_relaxed);
    try {
      call(context, item, worker);
    } catch (...) {
      keep_exception();
    }
    progress::counters.in_item.store(0, std::memory_order_relaxed);
    progress::advance();
    done_.fetch_add(1, std::memory_order_acq_rel);
    return true;
  }
  return false;
}

void ThreadPool::work(int worker) {
  const progress::ThreadScope watched(cat("engine thread ", worker), nullptr, this);
  std::uint64_t loop = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    while (take(worker)) {
    }
    loop = wait_for_other(loop);
  }
}

/// Waits until a loop other than `loop` has started, or the pool stops, and returns its number.
std::uint64_t ThreadPool::wait_for_other(std::uint64_t loop) {
  for (int spin = 0; spin < spins; ++spin) {
    const std::uint64_t now = next_[0].load(std::memory_order_acquire) >> 32;
    if (now != loop || stop_.load(std::memory_order_relaxed)) return now;
    pause();
  }
  std::unique_lock lock(mutex_);
  sleepers_.fetch_add(1);
  wake_.wait(lock, [&] { return next_[0].load() >> 32 != loop || stop_.load(); });
  sleepers_.fetch_sub(1);
  return next_[0].load() >> 32;
}

}  // namespace troupe::engine::ops::cpu
