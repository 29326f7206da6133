#include "actors/roles/rules/command/command.h"

#include <algorithm>
#include <map>
#include <string>

#include "engine/base/log.h"
#include "engine/base/text.h"

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

Result<> Command::check_files() const {
  const auto plan = sandbox::make_plan(options_.run, options_.limits, where_);
  RETURN_IF_ERROR(plan);
  return {};
}

Result<> Command::start() {
  if (!workers_.empty()) return {};
  auto plan = sandbox::make_plan(options_.run, options_.limits, where_);
  RETURN_IF_ERROR(plan);
  plan_ = std::move(*plan);
  events_.emplace();
  for (int i = 0; i < options_.workers; ++i) {
    Worker worker(options_, *plan_, stderr_history_, cat(where_, " worker ", i));
    if (auto started = worker.start(Clock::now()); !started) {
      workers_.clear();
      return fail(started.error().code, cat(where_, ": ", started.error().what));
    }
    workers_.push_back(std::move(worker));
  }
  return {};
}

struct Command::Batch {
  std::span<const protocol::RewardRequest> requests;
  std::vector<RuleResult> results;
  std::size_t next = 0, done = 0;
};

std::vector<RuleResult> Command::score(std::span<const protocol::RewardRequest> requests) {
  if (auto started = start(); !started) throw Failure(started.error());
  Batch batch{requests,
              std::vector<RuleResult>(requests.size(), fail(Errc::internal, "not scored")), 0, 0};
  try {
    while (batch.done < requests.size()) {
      send_to_idle_workers(batch);
      wait(batch);
      poll_busy_workers(batch);
    }
  } catch (...) {
    workers_.clear();  // busy workers hold requests of the failed batch
    throw;
  }
  report(batch.results);
  return std::move(batch.results);
}

void Command::report(const std::vector<RuleResult>& results) {
  std::map<std::string_view, int> kinds;
  const std::string* first = nullptr;
  for (const auto& result : results) {
    if (result) continue;
    if (first == nullptr) first = &result.error().what;
    const FailureKind kind = result.error().kind;
    ++kinds[names_of(kind)[static_cast<std::size_t>(kind)]];
  }
  if (kinds.empty() || reports_ == max_reports) return;
  std::vector<std::string> counts;
  int failed = 0;
  for (const auto& [kind, count] : kinds) {
    counts.push_back(cat(count, " ", kind));
    failed += count;
  }
  const std::string more =
      ++reports_ == max_reports ? " (further failures are counted, not logged)" : "";
  log_warning(cat(where_, ": no reward for ", failed, " of ", results.size(), " completions (",
                  join(counts, ", "), "); first failure: ", *first, more));
}

void Command::send_to_idle_workers(Batch& batch) {
  for (Worker& worker : workers_) {
    const auto now = Clock::now();
    if (worker.busy() || batch.next == batch.requests.size() || now < worker.next_start()) continue;
    const std::size_t index = batch.next++;
    if (auto asked = worker.ask(index, batch.requests[index], now); !asked)
      record(batch, index, failure(asked.error().code, FailureKind::crash, asked.error().what));
  }
}

// Waits for output of a busy worker, for the restart delay of an idle one, or for the next tick.
void Command::wait(const Batch& batch) {
  std::vector<WatchedDescriptor> watched;
  auto until = Clock::now() + tick;
  for (const Worker& worker : workers_) {
    if (!worker.busy()) {
      if (batch.next < batch.requests.size()) until = std::min(until, worker.next_start());
      continue;
    }
    for (const WatchedDescriptor& one : worker.watched()) watched.push_back(one);
    until = std::min(until, worker.deadline());
  }
  events_->wait(watched, until);
}

void Command::poll_busy_workers(Batch& batch) {
  for (Worker& worker : workers_) {
    if (!worker.busy()) continue;
    const std::size_t index = worker.index();
    if (auto result = worker.advance(Clock::now())) record(batch, index, std::move(*result));
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

void Command::record(Batch& batch, std::size_t index, RuleResult result) {
  if (result) limit_parts(*result);
  if (result) has_answered_ = true;
  if (!result && !has_answered_ && ++failures_ >= max_failures)
    throw Failure(
        {Errc::usage, cat(where_, ": ", quote(join(options_.run, " "), 400), " failed ", failures_,
                          " times without ever answering; last failure: ", result.error().what)});
  batch.results[index] = std::move(result);
  ++batch.done;
}

}  // namespace troupe::actors::rules
