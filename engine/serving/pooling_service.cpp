#include "engine/serving/pooling_service.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/progress.h"
#include "engine/base/threads/thread_with_blocked_signals.h"
#include "engine/serving/fair_queue.h"

namespace troupe::engine::serving {

using Clock = std::chrono::steady_clock;

namespace {

/// Tokens of one forward pass, unless a single sequence has more.
constexpr std::size_t pass_tokens = 8192;

struct Waiting {
  PoolingJob job;
  Clock::time_point deadline;
};

}  // namespace

class PoolingService::Loop {
 public:
  Loop(Engine& engine, ServiceLimits limits) : engine_(engine), limits_(limits) {
    thread_ = thread_with_blocked_signals("pooling", [this] { run(); });
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }
  Result<> submit(std::vector<PoolingJob> jobs, const std::string& client);
  ServiceCounters counters() const {
    const std::lock_guard lock(mutex_);
    ServiceCounters out = counters_;
    out.waiting = static_cast<std::int64_t>(waiting_.size());
    return out;
  }

 private:
  void run();
  bool take_batch();
  void end_dropped_jobs();
  void pool_batch();
  std::vector<float> values_of_batch();

  Engine& engine_;
  ServiceLimits limits_;
  std::vector<Waiting> batch_, dropped_;  // used by the thread of the loop only

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  FairQueue<Waiting> waiting_;
  bool stopping_ = false;
  ServiceCounters counters_;

  std::thread thread_;
};

Result<> PoolingService::Loop::submit(std::vector<PoolingJob> jobs, const std::string& client) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return fail(Errc::closed, "the server is shutting down");
    RETURN_IF_ERROR(waiting_.check_room(jobs.size(), limits_.max_waiting));
    const auto deadline = Clock::now() + limits_.deadline;
    for (PoolingJob& job : jobs) waiting_.push(client, {std::move(job), deadline});
  }
  changed_.notify_one();
  return {};
}

void PoolingService::Loop::run() {
  while (take_batch()) {
    end_dropped_jobs();
    if (batch_.empty()) continue;
    const progress::Operation watched("a batch of embeddings");
    pool_batch();
  }
  for (Waiting& each : std::exchange(batch_, {}))
    each.job.on_end(fail(Errc::closed, "the server is shutting down"));
}

/// Waits for jobs; false at the end, when the batch has all that are left.
bool PoolingService::Loop::take_batch() {
  std::unique_lock lock(mutex_);
  counters_.running = 0;
  while (!stopping_ && waiting_.empty()) changed_.wait_for(lock, std::chrono::seconds(1));
  if (stopping_) {
    batch_ = waiting_.take_if([](const Waiting&) { return true; });
    return false;
  }
  const auto now = Clock::now();
  dropped_ = waiting_.take_if([&](const Waiting& each) {
    return each.deadline <= now || (each.job.wanted && !each.job.wanted());
  });
  std::size_t tokens = 0;
  while (!waiting_.empty() && batch_.size() < static_cast<std::size_t>(limits_.max_batch) &&
         tokens < pass_tokens) {
    batch_.push_back(waiting_.pop());
    tokens += batch_.back().job.tokens.size();
  }
  counters_.running = std::ssize(batch_);
  counters_.prompt_tokens += static_cast<std::int64_t>(tokens);
  counters_.steps += batch_.empty() ? 0 : 1;
  return true;
}

void PoolingService::Loop::end_dropped_jobs() {
  const auto now = Clock::now();
  for (Waiting& each : std::exchange(dropped_, {})) {
    if (each.deadline > now)
      each.job.on_end(fail(Errc::cancelled, "the client has disconnected"));
    else
      each.job.on_end(fail(Errc::timeout, cat("the request waited ", limits_.deadline.count(),
                                              " s and was given up; the server is busy")));
  }
}

/// [rows of all jobs, columns].
std::vector<float> PoolingService::Loop::values_of_batch() {
  PoolingBatch batch;
  for (const Waiting& each : batch_) batch.add(each.job.tokens, each.job.every_token);
  return engine_.pool(batch);
}

void PoolingService::Loop::pool_batch() {
  Result<std::vector<float>> values = std::vector<float>{};
  try {
    values = values_of_batch();
  } catch (const Failure& failure) {
    values = fail(failure);
  } catch (const std::exception& problem) {
    log_error(cat("a pass of the pooling service: ", problem.what()));
    values = fail(Errc::internal, "the texts could not be scored; see the server's log");
  }
  std::int64_t at = 0, rows = 0;
  for (const Waiting& each : batch_) rows += each.job.rows();
  const std::int64_t columns = values ? std::ssize(*values) / rows : 0;
  for (Waiting& each : std::exchange(batch_, {})) {
    if (!values) {
      each.job.on_end(fail(values));
      continue;
    }
    const std::int64_t count = columns * each.job.rows();
    each.job.on_end(std::vector<float>(values->begin() + at, values->begin() + at + count));
    at += count;
  }
}

PoolingService::PoolingService(Engine& engine, ServiceLimits limits)
    : loop_(std::make_unique<Loop>(engine, limits)) {
}

PoolingService::~PoolingService() {
  stop();
}

void PoolingService::stop() {
  loop_->stop();
}

Result<> PoolingService::submit(std::vector<PoolingJob> jobs, const std::string& client) {
  return loop_->submit(std::move(jobs), client);
}

ServiceCounters PoolingService::counters() const {
  return loop_->counters();
}

}  // namespace troupe::engine::serving
