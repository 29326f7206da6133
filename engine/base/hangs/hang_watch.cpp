#include "engine/base/hangs/hang_watch.h"

#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/hangs/hang_detector.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/progress.h"
#include "engine/base/threads/thread_with_blocked_signals.h"

namespace troupe::progress {
namespace {

std::atomic<HangWatch*> present_watch{nullptr};

}  // namespace

HangWatch::HangWatch(HangWatchOptions options) : options_(std::move(options)) {
  check(present_watch.exchange(this) == nullptr, "there is a HangWatch already");
  thread_ = thread_with_blocked_signals("troupe/watch", [this] { run(); });
}

HangWatch::~HangWatch() {
  present_watch = nullptr;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void HangWatch::run() {
  HangDetector detector(options_.warn_after);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, options_.interval, [this] { return stopping_; })) {
    lock.unlock();
    const auto found = detector.look(look_at_threads(), std::chrono::steady_clock::now());
    for (const Hang& hang : found.began) log_warning(cat(options_.process, describe(hang)));
    for (const Hang& hang : found.present)
      add_hang(key_of(hang), cat(options_.process, describe(hang)));
    for (const Hang& hang : found.ended) {
      remove_hang(key_of(hang));
      log_info(cat(options_.process, hang.name, " (thread ", hang.thread, ")", advances_words,
                   " after ", hang.length.count() / 1000, " s without progress"));
    }
    end_when_late();
    if (options_.limit && found.longest >= *options_.limit && !found.present.empty() && !ending())
      options_.end_process(cat("the run cannot continue: ", hangs()));
    lock.lock();
  }
}

bool HangWatch::ending() {
  const std::lock_guard lock(mutex_);
  return end_.has_value();
}

void HangWatch::end_when_late() {
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    if (!end_ || std::chrono::steady_clock::now() < *end_) return;
    why = cause_;
  }
  options_.end_process(why);
}

void end_process_after(std::chrono::milliseconds time, std::string why) {
  HangWatch* const watch = present_watch.load();
  if (watch == nullptr) return;
  const std::lock_guard lock(watch->mutex_);
  if (watch->end_) return;
  watch->cause_ = std::move(why);
  watch->end_ = std::chrono::steady_clock::now() + time;
}

}  // namespace troupe::progress
