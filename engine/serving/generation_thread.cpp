#include "engine/serving/generation_thread.h"

#include <algorithm>
#include <future>
#include <optional>
#include <utility>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/progress.h"
#include "engine/base/threads/thread_with_blocked_signals.h"
#include "engine/serving/report_end.h"

namespace troupe::engine::serving {

using generate::Generation;

namespace {

/// Period of the check of all waiting deadlines.
constexpr std::chrono::milliseconds sweep_period{100};

Error closed() {
  return {Errc::closed, "the server is shutting down"};
}

/// `work`, whose exceptions are logged and become errors.
Result<> guarded(const std::function<Result<>()>& work) {
  try {
    return work();
  } catch (const std::exception& problem) {
    log_error(cat("a change of the weights: ", problem.what()));
    return fail(Errc::internal, "the weights could not be changed");
  }
}

Generation cancelled_before_start(std::uint64_t id, const Job& job) {
  Generation out;
  out.id = id;
  out.sample_id = job.sample_id;
  out.prompt_tokens = static_cast<std::int32_t>(job.request->prompt.size());
  out.finish = generate::FinishReason::cancelled;
  return out;
}

}  // namespace

GenerationThread::GenerationThread(Engine& engine, ServiceLimits limits)
    : engine_(engine), limits_(limits) {
  publish();
  thread_ = thread_with_blocked_signals("generation", [this] { run(); });
}

GenerationThread::~GenerationThread() {
  stop();
}

void GenerationThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Result<std::vector<std::uint64_t>> GenerationThread::submit(std::vector<Job> jobs,
                                                            const std::string& client) {
  std::vector<std::uint64_t> ids;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return fail(closed());
    RETURN_IF_ERROR(waiting_.check_room(jobs.size(), limits_.max_waiting));
    const auto deadline = Clock::now() + limits_.deadline;
    for (Job& job : jobs) {
      ids.push_back(++next_id_);
      waiting_.push(client, {next_id_, std::move(job), deadline});
    }
  }
  changed_.notify_one();
  return ids;
}

void GenerationThread::cancel(std::uint64_t id) {
  {
    const std::lock_guard lock(mutex_);
    cancelled_.push_back(id);
  }
  changed_.notify_one();
}

ServiceCounters GenerationThread::counters() const {
  const std::lock_guard lock(mutex_);
  ServiceCounters out = counters_;
  out.waiting = static_cast<std::int64_t>(waiting_.size());
  return out;
}

void GenerationThread::set_paused(bool paused) {
  {
    const std::lock_guard lock(mutex_);
    paused_ = paused;
  }
  changed_.notify_one();
}

bool GenerationThread::paused() const {
  const std::lock_guard lock(mutex_);
  return paused_;
}

void GenerationThread::post(Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return work(false);
    work_.push_back(std::move(work));
  }
  changed_.notify_one();
}

Result<> GenerationThread::between_steps(const std::function<Result<>()>& work) {
  std::promise<Result<>> done;
  auto result = done.get_future();
  post([&](bool open) { done.set_value(open ? guarded(work) : fail(closed())); });
  return result.get();
}

Result<std::uint64_t> GenerationThread::change_weights(const std::function<Result<>()>& write) {
  std::uint64_t version = 0;
  const auto changed = between_steps([&]() -> Result<> {
    RETURN_IF_ERROR(engine_.set_weights({.write = write}));
    version = engine_.version();
    return {};
  });
  RETURN_IF_ERROR(changed);
  return version;
}

void GenerationThread::adopt_weights(std::uint64_t version, std::function<Result<>()> write,
                                     bool between_sequences) {
  const auto logged = [version, write = std::move(write)]() -> Result<> {
    auto written = guarded(write);
    if (!written) log_error(cat("weights of version ", version, ": ", written.error().what));
    return written;
  };
  post([=, this](bool open) {
    if (open)
      static_cast<void>(engine_.set_weights(
          {.write = logged, .version = version, .between_sequences = between_sequences}));
  });
}

void GenerationThread::run() {
  while (take_changes()) {
    for (const Work& work : std::exchange(changing_, {})) work(true);
    end_dropped();
    for (const std::uint64_t id : std::exchange(ending_, {})) engine_.cancel(id);
    end_overdue();
    start_waiting();
    if (steps_ && !engine_.idle()) step();
    publish();
  }
  for (const Work& work : std::exchange(changing_, {})) work(false);
  for (const Pending& each : std::exchange(dropped_, {})) report_end(each.job, fail(closed()));
  engine_.fail_all(closed());
}

/// With the mutex held.
bool GenerationThread::has_work() const {
  if (!work_.empty() || !cancelled_.empty()) return true;
  return !paused_ && (!engine_.idle() || !waiting_.empty());
}

/// Waits for work; false at the end.
bool GenerationThread::take_changes() {
  std::unique_lock lock(mutex_);
  // Wakes up now and then for the deadlines of waiting jobs, though a free generator starts them at
  // once.
  while (!stopping_ && !has_work()) {
    changed_.wait_for(lock, std::chrono::seconds(1));
    if (paused_) break;
  }
  steps_ = !paused_;
  changing_ = std::exchange(work_, {});
  if (stopping_) {
    dropped_ = waiting_.take_if([](const Pending&) { return true; });
    return false;
  }
  ending_ = std::exchange(cancelled_, {});
  const auto now = Clock::now();
  if (!ending_.empty() || now >= next_sweep_) {
    next_sweep_ = now + sweep_period;
    dropped_ = waiting_.take_if([&](const Pending& each) {
      return each.deadline <= now || std::ranges::find(ending_, each.id) != ending_.end();
    });
  }
  return true;
}

void GenerationThread::end_dropped() {
  const auto now = Clock::now();
  for (const Pending& each : std::exchange(dropped_, {})) {
    if (each.deadline <= now) {
      report_end(each.job, fail(Errc::timeout, cat("the request waited ", limits_.deadline.count(),
                                                   " s and was given up; the server is busy")));
    } else {
      report_end(each.job, cancelled_before_start(each.id, each.job));
    }
  }
}

void GenerationThread::end_overdue() {
  const auto now = Clock::now();
  for (auto& [id, deadline] : deadlines_) {
    if (deadline > now) continue;
    deadline = Clock::time_point::max();  // it ends with the next step
    engine_.fail_job(id, {Errc::timeout, cat("the request took longer than ",
                                             limits_.deadline.count(), " s and was given up")});
  }
}

void GenerationThread::start_waiting() {
  const auto most = static_cast<std::size_t>(limits_.max_batch);
  while (steps_ && engine_.may_start() && engine_.active() < most) {
    std::unique_lock lock(mutex_);
    if (waiting_.empty()) return;
    Pending next = waiting_.pop();
    lock.unlock();
    start(std::move(next));
  }
}

void GenerationThread::start(Pending pending) {
  const std::uint64_t id = pending.id;
  deadlines_.emplace(id, pending.deadline);
  pending.job.on_end = [this, id, on_end = std::move(pending.job.on_end)](auto result) {
    deadlines_.erase(id);
    publish();  // before on_end: who hears of the end sees the pages free
    on_end(std::move(result));
  };
  engine_.submit(id, std::move(pending.job));
}

void GenerationThread::step() {
  const progress::Operation watched("a decoding step");
  try {
    engine_.step();
  } catch (const generate::RequestFailure& failure) {
    log_error(failure.what());
    engine_.fail_job(failure.id(), failure.error());
  } catch (const std::exception& problem) {
    const Error why = error_of(problem);
    log_error(cat("a decoding step: ", why.what));
    if (why.code == Errc::full && engine_.fail_newest({Errc::full, cat("the server: ", why.what)}))
      return;
    engine_.fail_all({Errc::internal, "a decoding step failed; see the server's log"});
  }
}

void GenerationThread::publish() {
  const std::lock_guard lock(mutex_);
  counters_ = engine_.counters();
}

}  // namespace troupe::engine::serving
