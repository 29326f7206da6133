#include "engine/ledger/ledger.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/errors/check.h"
#include "engine/base/files/space_wait.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/thread_with_blocked_signals.h"
#include "engine/ledger/segments.h"
#include "engine/ledger/store.h"

namespace troupe::engine::ledger {
namespace {

using Clock = std::chrono::steady_clock;

struct Pending {
  Row row;
  std::string payload;
};

// Writes groups of rows; in the writing thread, and before it starts.
class GroupWriter {
 public:
  GroupWriter(Store store, SegmentWriter segments, LedgerOptions options)
      : store_(std::move(store)), segments_(std::move(segments)), options_(std::move(options)) {}

  const Anchor& chain() const { return store_.chain(); }

  // Payloads are durable before the rows that name them, and rows that say that a segment is
  // removed before it is.
  Result<int> write(std::vector<Pending>& group) {
    auto syncs = write_payloads(group);
    RETURN_IF_ERROR(syncs);
    SpaceWait space(store_.path());
    for (;;) {
      auto written = write_rows(group);
      if (written) break;
      if (!space.again(store_.roll_back())) return fail(written);
    }
    RETURN_IF_ERROR(before("committed"));
    for (const Pending& each : group)
      if (each.row.kind == Kind::removed) RETURN_IF_ERROR(segments_.remove(*each.row.segment));
    return *syncs + 1;
  }

 private:
  Result<> write_rows(const std::vector<Pending>& group) {
    RETURN_IF_ERROR(before("begin"));
    RETURN_IF_ERROR(store_.begin());
    for (const Pending& each : group) {
      RETURN_IF_ERROR(before("insert"));
      RETURN_IF_ERROR(store_.insert(each.row));
    }
    RETURN_IF_ERROR(before("commit"));
    return store_.commit();
  }
  Result<int> write_payloads(std::vector<Pending>& group) {
    std::int64_t sequence = store_.chain().length;
    for (Pending& each : group) {
      ++sequence;
      if (!each.row.place) continue;
      RETURN_IF_ERROR(before("write payload"));
      each.row.hash = payload_hash(each.payload);
      RETURN_IF_ERROR(segments_.write(sequence, *each.row.place, each.payload, each.row.hash));
    }
    RETURN_IF_ERROR(before("synchronize payloads"));
    return segments_.sync();
  }
  Result<> before(std::string_view operation) const {
    return options_.before ? options_.before(operation) : Result<>();
  }

  Store store_;
  SegmentWriter segments_;
  LedgerOptions options_;
};

class WrittenBehind final : public Ledger {
 public:
  WrittenBehind(GroupWriter writer, LedgerOptions options, std::int64_t segment,
                std::map<std::int64_t, std::int64_t> kept)
      : options_(std::move(options)),
        writer_(std::move(writer)),
        appended_(writer_.chain().length),
        durable_(writer_.chain()),
        segment_(segment),
        kept_(std::move(kept)) {
    thread_ = thread_with_blocked_signals("ledger", [this] { serve(); });
  }
  ~WrittenBehind() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  Result<std::int64_t> append(Row row, std::string payload) override {
    std::unique_lock lock(mutex_);
    RETURN_IF_ERROR(wait(lock, "room for rows of the ledger", [this] {
      return pending_bytes_ < 8 * options_.bytes && std::ssize(pending_) < 8 * options_.rows;
    }));
    if (!payload.empty()) {
      row.place = Place{segment_, offset_ + frame_bytes, std::ssize(payload)};
      offset_ += frame_bytes + std::ssize(payload);
    }
    if (pending_.empty()) oldest_ = Clock::now();
    pending_bytes_ += std::ssize(payload) + std::ssize(row.detail);
    pending_.push_back({std::move(row), std::move(payload)});
    ++appended_;
    if (pending_.size() == 1 || many()) changed_.notify_all();
    return appended_;
  }

  Result<> wait_durable(std::int64_t sequence) override {
    std::unique_lock lock(mutex_);
    check(sequence <= appended_, "Ledger: a row that was not appended");
    if (durable_.length >= sequence) return {};
    ++counts_.waits;
    const auto began = Clock::now();
    ++waiting_;
    changed_.notify_all();
    auto done =
        wait(lock, "rows of the ledger on disk", [&] { return durable_.length >= sequence; });
    --waiting_;
    counts_.waited += std::chrono::duration<double>(Clock::now() - began).count();
    return done;
  }

  Result<Anchor> anchor() override {
    RETURN_IF_ERROR(wait_durable(appended_));
    const std::lock_guard lock(mutex_);
    return durable_;
  }

  std::int64_t segment() const override { return segment_; }
  void start_segment() override {
    if (offset_ == 0) return;
    ++segment_;
    offset_ = 0;
  }
  Result<> remove_segment(std::int64_t segment) override {
    check(segment < segment_, "Ledger: the segment that is written to cannot be removed");
    RETURN_IF_ERROR(append({.kind = Kind::removed, .segment = segment}, {}));
    return {};
  }

  std::map<std::int64_t, std::int64_t> kept_segments() const override { return kept_; }
  LedgerCounts counts() const override {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  bool many() const {
    return std::ssize(pending_) >= options_.rows || pending_bytes_ >= options_.bytes;
  }

  template <class Condition>
  Result<> wait(std::unique_lock<std::mutex>& lock, std::string_view what, Condition condition) {
    const bool done = written_.wait_for(lock, options_.timeout,
                                        [&] { return failure_.has_value() || condition(); });
    if (failure_) return fail(*failure_);
    if (!done)
      return fail(Errc::timeout, cat("waited ", options_.timeout.count(), " s for ", what,
                                     ": the disk of the output does not answer"));
    return {};
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ending_ || !pending_.empty(); });
      if (pending_.empty()) return;
      changed_.wait_until(lock, oldest_ + options_.delay,
                          [this] { return ending_ || waiting_ > 0 || many(); });
      std::vector<Pending> group = std::exchange(pending_, {});
      pending_bytes_ = 0;
      lock.unlock();
      const auto syncs = writer_.write(group);
      lock.lock();
      if (syncs) {
        durable_ = writer_.chain();
        counts_.rows += std::ssize(group);
        counts_.syncs += *syncs;
      } else {
        failure_ = syncs.error();
      }
      written_.notify_all();
      if (failure_) return;
    }
  }

  const LedgerOptions options_;
  GroupWriter writer_;  // of thread_
  mutable std::mutex mutex_;
  std::condition_variable changed_, written_;
  std::vector<Pending> pending_;
  std::int64_t pending_bytes_ = 0, appended_, waiting_ = 0;
  Clock::time_point oldest_;
  Anchor durable_;
  LedgerCounts counts_;
  std::optional<Error> failure_;
  bool ending_ = false;
  std::int64_t segment_, offset_ = 0;  // of the appending thread
  const std::map<std::int64_t, std::int64_t> kept_;
  std::thread thread_;
};

tl::unexpected<Error> with_advice(const Error& error) {
  if (error.code != Errc::corrupt) return fail(error);
  return fail(error.code, cat(error.what,
                              ". The ledger was damaged or cut since; the run does not continue "
                              "it. `troupe audit` lists the damage; to continue without the record "
                              "of the earlier steps, move ledger.db and ledger/ elsewhere"));
}

}  // namespace

Result<std::unique_ptr<Ledger>> Ledger::open(const OutputFolder& output,
                                             const std::optional<Anchor>& expected,
                                             LedgerOptions options) {
  auto folder = output.folder(std::string(segments_folder));
  RETURN_IF_ERROR(folder);
  auto store = Store::open(output);
  if (!store) return with_advice(store.error());
  if (auto intact = store->verify(expected.value_or(Anchor())); !intact)
    return with_advice(intact.error());
  const auto of_rows = store->last_segment();
  RETURN_IF_ERROR(of_rows);
  const auto of_files = last_segment(*folder);
  RETURN_IF_ERROR(of_files);
  auto kept = store->segments(false);
  RETURN_IF_ERROR(kept);
  const auto removed = store->segments(true);
  RETURN_IF_ERROR(removed);
  SegmentWriter segments(std::move(*folder));
  for (const auto& [segment, last] : *removed) RETURN_IF_ERROR(segments.remove(segment));
  GroupWriter writer(std::move(*store), std::move(segments), options);
  return std::make_unique<WrittenBehind>(std::move(writer), std::move(options),
                                         1 + std::max(*of_rows, *of_files), std::move(*kept));
}

}  // namespace troupe::engine::ledger
