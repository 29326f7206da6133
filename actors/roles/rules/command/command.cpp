#include "actors/roles/rules/command/command.h"

#include <algorithm>
#include <map>
#include <string>

#include "engine/base/log.h"
#include "engine/base/text.h"

namespace troupe::actors::rules {
namespace {

using Clock = std::chrono::steady_clock;

// A program that never answered is given up after so many failures: its mistake is not in a
// completion.
constexpr int most_failures = 10;
// After so many reports of failures a run says no more of them.
constexpr int most_reports = 100;
// How often a wait is interrupted to weigh the processes.
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

Result<> Command::start() {
  if (!workers_.empty()) return {};
  auto plan = sandbox::make_plan(options_.run, options_.limits, where_);
  RETURN_IF_ERROR(plan);
  plan_ = std::move(*plan);
  for (int i = 0; i < options_.workers; ++i) {
    Worker worker(options_, *plan_, cat(where_, " worker ", i));
    if (auto started = worker.start(Clock::now()); !started) {
      workers_.clear();
      return fail(started.error().code, cat(where_, ": ", started.error().what));
    }
    workers_.push_back(std::move(worker));
  }
  return {};
}

struct Command::Round {
  std::span<const protocol::RewardRequest> requests;
  std::vector<RuleResult> results;
  std::size_t next = 0, done = 0;
  Time weighed;
};

std::vector<RuleResult> Command::judge(std::span<const protocol::RewardRequest> requests) {
  if (auto started = start(); !started) throw Failure(started.error());
  Round round{requests,
              std::vector<RuleResult>(requests.size(), fail(Errc::internal, "not judged")), 0, 0,
              Clock::now()};
  try {
    while (round.done < requests.size()) {
      ask_idle(round);
      wait(round);
      hear_busy(round);
    }
  } catch (...) {
    workers_.clear();  // those that are still at work have questions of a round that is over
    throw;
  }
  report(round.results);
  return std::move(round.results);
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
  if (kinds.empty() || reports_ == most_reports) return;
  std::vector<std::string> counts;
  for (const auto& [kind, count] : kinds) counts.push_back(cat(count, " ", kind));
  const std::string more =
      ++reports_ == most_reports ? " (further failures are counted, not logged)" : "";
  log_warning(cat(where_, ": no reward for ", join(counts, ", "), " of ", results.size(),
                  " requests; the first: ", *first, more));
}

void Command::ask_idle(Round& round) {
  for (Worker& worker : workers_) {
    const auto now = Clock::now();
    if (worker.busy() || round.next == round.requests.size() || now < worker.rested()) continue;
    const std::size_t index = round.next++;
    if (auto asked = worker.ask(index, round.requests[index], now); !asked)
      settle(round, index, failure(asked.error().code, FailureKind::crash, asked.error().what));
  }
}

// Until one of the busy has something to say, one of the tired is rested, or the tick.
void Command::wait(const Round& round) const {
  std::vector<pollfd> watched;
  auto until = Clock::now() + tick;
  for (const Worker& worker : workers_) {
    if (!worker.busy()) {
      if (round.next < round.requests.size()) until = std::min(until, worker.rested());
      continue;
    }
    for (const pollfd& one : worker.watched()) watched.push_back(one);
    until = std::min(until, worker.deadline());
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  ::poll(watched.data(), watched.size(), static_cast<int>(std::max<std::int64_t>(left, 0)));
}

void Command::hear_busy(Round& round) {
  for (Worker& worker : workers_) {
    if (!worker.busy()) continue;
    const std::size_t index = worker.index();
    if (auto result = worker.advance(Clock::now())) settle(round, index, std::move(*result));
  }
  if (Clock::now() < round.weighed + tick) return;
  const sandbox::Census census;
  for (Worker& worker : workers_) {
    if (!worker.busy()) continue;
    const std::size_t index = worker.index();
    if (auto result = worker.weigh(census, Clock::now())) settle(round, index, std::move(*result));
  }
  round.weighed = Clock::now();
}

void Command::settle(Round& round, std::size_t index, RuleResult result) {
  if (result) has_answered_ = true;
  if (!result && !has_answered_ && ++failures_ >= most_failures)
    throw Failure(
        {Errc::usage,
         cat(where_, ": ", quote(join(options_.run, " "), 400), " failed ", failures_,
             " times and never gave an answer; the last failure: ", result.error().what)});
  round.results[index] = std::move(result);
  ++round.done;
}

}  // namespace troupe::actors::rules
