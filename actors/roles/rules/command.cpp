#include "actors/roles/rules/command.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/progress.h"
#include "engine/base/threads/thread_with_blocked_signals.h"

namespace troupe::actors::rules {
namespace {

using Clock = std::chrono::steady_clock;

// A program that fails this often without ever answering is broken, whatever the completions.
constexpr int max_failures = 10;
// Maximum number of log lines about failures.
constexpr int max_reports = 100;
// Maximum number of different names of parts in a run, and the part that counts the others.
constexpr std::size_t max_part_names = 64;
constexpr const char* ignored_parts = "ignored_parts";
// Longest wait, for effects that no descriptor shows.
constexpr std::chrono::milliseconds tick{50};

}  // namespace

Result<> CommandOptions::validate(const std::string& where) const {
  if (run.empty() || run[0].empty())
    return fail(Errc::usage, cat(where,
                                 ".run: expected a program and its arguments, like [python3, "
                                 "my_reward.py], found none"));
  const auto between = [&](const char* name, double value, double low, double high) -> Result<> {
    if (low <= value && value <= high) return {};
    return fail(Errc::usage,
                cat(where, ".", name, " = ", value, ": must be between ", low, " and ", high));
  };
  for (const auto& valid :
       {between("timeout", timeout, 0.01, 3600), between("startup", startup, 0, 3600),
        between("workers", workers, 1, 256), between("answer_kb", answer_kb, 1, 16384)})
    if (!valid) return valid;
  return limits.validate(where);
}

Result<sandbox::SandboxPlan> Command::prepared(CommandOptions& options) const {
  options = given_;
  if (prepare_) RETURN_IF_ERROR(prepare_(options));
  return sandbox::make_plan(options.run, options.limits, where_);
}

Result<> Command::check_files() const {
  CommandOptions options;
  const auto plan = prepared(options);
  RETURN_IF_ERROR(plan);
  return {};
}

struct Command::Batch {
  using Requests = std::span<const protocol::RewardRequest>;
  // A unit that is sent once more, and the worker that failed to answer it.
  struct Retry {
    std::size_t index;
    const Seat* failed;
  };
  std::vector<Requests> units;  // what is sent at a time: a completion, or those of a prompt
  std::vector<std::vector<RuleResult>> results;  // of the units
  std::promise<std::vector<RuleResult>> answer = {};
  std::size_t next = 0, answered = 0;
  bool probe = false;              // one unit without completions, whose failure is its result
  std::deque<Retry> retries = {};  // not sent yet
  std::map<std::size_t, std::string> first_failures = {};  // of the units that are sent twice

  Batch(Requests requests, bool group) {
    for (std::size_t at = 0, end = 0; at < requests.size(); at = end) {
      for (end = at + 1; group && end < requests.size() &&
                         requests[end].prompt_id == requests[at].prompt_id &&
                         requests[end].prompt == requests[at].prompt;)
        ++end;
      units.push_back(requests.subspan(at, end - at));
    }
    results.resize(units.size());
  }

  // A retry for this worker: one that another worker failed to answer, unless there is no other.
  auto retry_for(const Seat& seat, bool only_worker) {
    return std::ranges::find_if(
        retries, [&](const Retry& each) { return only_worker || each.failed != &seat; });
  }
  bool has_work_for(const Seat& seat, bool only_worker) {
    return next < units.size() || retry_for(seat, only_worker) != retries.end();
  }
  // The next unit for a worker that has_work_for() says there is one for.
  std::size_t take(const Seat& seat, bool only_worker) {
    const auto retry = retry_for(seat, only_worker);
    if (retry == retries.end()) return next++;
    const std::size_t index = retry->index;
    retries.erase(retry);
    return index;
  }
};

namespace {

// Whether another process may succeed: the others are failures of the program on this text.
bool may_be_retried(FailureKind kind) {
  return kind == FailureKind::crash || kind == FailureKind::malformed;
}

}  // namespace

Command::~Command() {
  if (!thread_.joinable()) return;
  events_->post([this] { stopping_ = true; });
  thread_.join();
}

// The kernel ends a process with the thread that started it, so the thread that serves starts all.
Result<> Command::start() {
  if (thread_.joinable()) return {};
  if (!events_) events_.emplace();
  const auto promise = std::make_shared<std::promise<Result<>>>();
  auto starting = promise->get_future();
  thread_ = thread_with_blocked_signals("reward program", [this, promise] { serve(*promise); });
  Result<> started;
  try {
    started = starting.get();
  } catch (...) {
    thread_.join();
    throw;
  }
  if (!started) thread_.join();
  return started;
}

Result<> Command::start_workers() {
  auto plan = prepared(options_);
  RETURN_IF_ERROR(plan);
  plan_ = std::move(*plan);
  for (int i = 0; i < options_.workers; ++i) {
    Worker worker(options_, *plan_, helpers_, stderr_history_, cat(where_, " worker ", i));
    if (auto started = worker.start(Clock::now()); !started) {
      seats_.clear();
      return fail(started.error().code, cat(where_, ": ", started.error().what));
    }
    seats_.push_back({std::move(worker)});
  }
  return {};
}

std::vector<RuleResult> Command::score(std::span<const protocol::RewardRequest> requests) {
  if (auto started = start(); !started) throw Failure(started.error());
  if (requests.empty()) return {};
  Batch batch(requests, options_.group);
  return run(batch);
}

std::vector<RuleResult> Command::run(Batch& batch) {
  auto answer = batch.answer.get_future();
  events_->post([this, &batch] { batches_.push_back(&batch); });
  const progress::Wait watched;  // the programs have deadlines
  return answer.get();
}

Result<> Command::try_program() {
  Batch batch({}, true);
  batch.units.emplace_back();
  batch.results.emplace_back();
  batch.probe = true;
  try {
    const auto results = run(batch);
    if (results.empty() || results[0]) return {};
    return fail(Errc::usage, cat(where_, ": ", results[0].error().what));
  } catch (const Failure& failure) {
    return fail(failure);
  }
}

// Runs on its own thread until the rule ends. A broken program is started again for the next batch.
void Command::serve(std::promise<Result<>>& started) {
  try {
    const auto result = start_workers();
    started.set_value(result);
    if (!result) return;
  } catch (...) {
    started.set_exception(std::current_exception());
    return;
  }
  while (!stopping_) {
    try {
      if (seats_.empty() && !batches_.empty()) value_or_throw(start_workers());
      send_to_idle_workers();
      wait();
      poll_busy_workers();
    } catch (...) {
      seats_.clear();  // busy workers hold requests of the failed batches
      fail_batches(std::current_exception());
    }
  }
  seats_.clear();
}

void Command::fail_batches(const std::exception_ptr& why) {
  for (Batch* batch : std::exchange(batches_, {})) {
    auto answer = std::move(batch->answer);  // its receiver destroys the batch
    answer.set_exception(why);
  }
}

void Command::report(const Batch& batch) {
  std::map<std::string_view, int> kinds;
  const std::string* first = nullptr;
  std::size_t completions = 0, second_tries = 0;
  for (const auto& unit : batch.results) completions += unit.size();
  for (const auto& failed : batch.first_failures) second_tries += batch.units[failed.first].size();
  for (const auto& unit : batch.results)
    for (const auto& result : unit) {
      if (result) continue;
      if (first == nullptr) first = &result.error().what;
      const FailureKind kind = result.error().kind;
      ++kinds[names_of(kind)[static_cast<std::size_t>(kind)]];
    }
  if ((kinds.empty() && batch.first_failures.empty()) || reports_ == max_reports) return;
  const std::string more =
      ++reports_ == max_reports ? " (further failures are counted, not logged)" : "";
  if (kinds.empty())
    return log_warning(cat(where_, ": ", second_tries, " of ", completions,
                           " completions were scored at the second try; first failure: ",
                           batch.first_failures.begin()->second, more));
  std::vector<std::string> counts;
  int failed = 0;
  for (const auto& [kind, count] : kinds) {
    counts.push_back(cat(count, " ", kind));
    failed += count;
  }
  log_warning(cat(where_, ": no reward for ", failed, " of ", completions, " completions (",
                  join(counts, ", "), "); first failure: ", *first, more));
}

// The first batch with a request for this worker.
Command::Batch* Command::batch_for(const Seat& seat) {
  const bool only = seats_.size() == 1;
  const auto found =
      std::ranges::find_if(batches_, [&](Batch* each) { return each->has_work_for(seat, only); });
  return found == batches_.end() ? nullptr : *found;
}

void Command::send_to_idle_workers() {
  for (Seat& seat : seats_) {
    const auto now = Clock::now();
    if (seat.worker.busy() || now < seat.worker.next_start()) continue;
    Batch* const batch = batch_for(seat);
    if (!batch) continue;
    seat.batch = batch;
    const std::size_t index = batch->take(seat, seats_.size() == 1);
    if (auto asked = seat.worker.ask(index, batch->units[index], now); !asked)
      record(seat, index, failure(asked.error().code, FailureKind::crash, asked.error().what));
  }
}

// Waits for output of a busy worker, for the restart delay of an idle one, for the next tick, or
// for a batch.
void Command::wait() {
  std::vector<WatchedDescriptor> watched;
  auto until = batches_.empty() ? Time::max() : Clock::now() + tick;
  for (const Seat& seat : seats_) {
    if (!seat.worker.busy()) {
      if (batch_for(seat)) until = std::min(until, seat.worker.next_start());
      continue;
    }
    for (const WatchedDescriptor& one : seat.worker.watched()) watched.push_back(one);
    until = std::min(until, seat.worker.deadline());
  }
  events_->wait(watched, until);
}

void Command::poll_busy_workers() {
  for (Seat& seat : seats_) {
    if (!seat.worker.busy()) continue;
    const std::size_t index = seat.worker.index();
    if (auto answer = seat.worker.advance(Clock::now())) record(seat, index, std::move(*answer));
  }
}

// Names become metrics, which are kept for the whole run.
void Command::limit_parts(Scored& scored) {
  double ignored = 0;
  std::erase_if(scored.parts, [&](const auto& part) {
    if (part_names_.contains(part.first)) return false;
    if (part_names_.size() < max_part_names) {
      part_names_.insert(part.first);
      return false;
    }
    ++ignored;
    return true;
  });
  if (ignored > 0) scored.parts.emplace_back(ignored_parts, ignored);
}

void Command::give_up(const std::string& last) const {
  const bool advised = last.find(options_.advice) != std::string::npos;
  const std::string title = options_.title.empty() ? join(options_.run, " ") : options_.title;
  throw Failure({Errc::usage, cat(where_, ": ", quote(title, 400), " failed ", failures_,
                                  " times without ever answering; last failure: ", last,
                                  advised ? "" : cat("; ", options_.advice))});
}

void Command::record(Seat& seat, std::size_t index, Answer answer) {
  Batch& batch = *seat.batch;
  if (answer) {
    for (RuleResult& each : *answer) limit_parts(*each);
    has_answered_ |= !batch.probe;
    batch.results[index] = std::move(*answer);
  } else {
    if (!has_answered_ && ++failures_ >= max_failures) give_up(answer.error().what);
    if (may_be_retried(answer.error().kind) && !batch.probe &&
        batch.first_failures.emplace(index, answer.error().what).second) {
      batch.retries.push_back({index, &seat});
      return;
    }
    const std::size_t count = batch.probe ? 1 : batch.units[index].size();
    batch.results[index].assign(count, tl::unexpected<RuleError>(answer.error()));
  }
  if (++batch.answered == batch.units.size()) finish(batch);
}

void Command::finish(Batch& batch) {
  if (!batch.probe) report(batch);
  std::erase(batches_, &batch);
  std::vector<RuleResult> all;
  for (auto& unit : batch.results) std::ranges::move(unit, std::back_inserter(all));
  auto answer = std::move(batch.answer);  // its receiver destroys the batch
  answer.set_value(std::move(all));
}

}  // namespace troupe::actors::rules
