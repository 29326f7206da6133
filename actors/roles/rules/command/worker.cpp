#include "actors/roles/rules/command/worker.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "actors/roles/rules/command/json_lines.h"
#include "engine/base/check.h"
#include "engine/base/text.h"

namespace troupe::actors::rules {
namespace {

using std::chrono::milliseconds;

// A process that closed a stream is about to end, as a rule: how it ends says more than that it
// closed something.
constexpr int last_moments_ms = 200;
constexpr std::size_t at_once = 64 << 10;

std::chrono::steady_clock::duration seconds(double count) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(count));
}

short ready(int descriptor, short events, int wait_ms = 0) {
  pollfd one{descriptor, events, 0};
  return ::poll(&one, 1, wait_ms) > 0 ? one.revents : short{0};
}

}  // namespace

milliseconds pause_after(int failures) {
  if (failures < 3) return milliseconds(0);
  return std::min(milliseconds(10 << std::min(failures - 3, 10)), milliseconds(200));
}

tl::unexpected<RuleError> failure(Errc code, FailureKind kind, const std::string& what) {
  const auto name = names_of(kind)[static_cast<std::size_t>(kind)];
  return tl::unexpected<RuleError>(RuleError({code, cat(name, ": ", what)}, kind));
}

Result<> Worker::start(Time now) {
  if (process_ && fit_for_more()) return {};
  process_.reset();
  auto started = sandbox::Process::start(*plan_);
  if (!started) {
    rested_ = now + pause_after(++failures_);
    return fail(started);
  }
  process_.emplace(std::move(*started));
  words_.begin();
  output_.clear();
  output_open_ = errors_open_ = listens_ = fresh_ = true;
  return {};
}

// It runs, listens, says nothing unasked, and has processor time left.
bool Worker::fit_for_more() const {
  return !options_->fresh && ready(process_->ending(), POLLIN) == 0 &&
         ready(process_->output(), POLLIN) == 0 && output_.empty() &&
         (ready(process_->input(), POLLOUT) & POLLERR) == 0 &&
         process_->processor_seconds() < 0.5 * options_->limits.cpu_seconds;
}

Result<> Worker::ask(std::size_t index, const protocol::RewardRequest& request, Time now) {
  check(!busy(), "a worker is asked one question at a time");
  RETURN_IF_ERROR(start(now));
  ++last_id_;
  question_ =
      Question{index, last_id_, question_line(last_id_, request), 0, now + seconds(patience())};
  send();
  return {};
}

// A process that answered an earlier question may have had something left of it to say, or to end
// by. What it did then is not this question's fault: a new process is asked.
std::optional<RuleResult> Worker::again(Time now) {
  process_.reset();
  question_->sent = 0;
  if (auto started = start(now); !started) {
    question_.reset();
    return failure(started.error().code, FailureKind::crash, started.error().what);
  }
  question_->deadline = now + seconds(patience());
  send();
  return std::nullopt;
}

std::array<pollfd, 4> Worker::watched() const {
  const bool unsent = listens_ && question_->sent < question_->line.size();
  return {pollfd{unsent ? process_->input() : -1, POLLOUT, 0},
          pollfd{output_open_ ? process_->output() : -1, POLLIN, 0},
          pollfd{errors_open_ ? process_->errors() : -1, POLLIN, 0},
          pollfd{process_->ending(), POLLIN, 0}};
}

void Worker::send() {
  while (question_->sent < question_->line.size()) {
    const ssize_t taken =
        process_->write(std::string_view(question_->line).substr(question_->sent));
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) {
      listens_ = errno == EAGAIN;
      return;
    }
    question_->sent += static_cast<std::size_t>(taken);
  }
}

// No more than one answer may be long, and one byte that shows that it is longer.
void Worker::read_output() {
  std::array<char, 4096> bytes;
  while (output_.size() <= longest_answer()) {
    const ssize_t count = ::read(process_->output(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      output_open_ = count < 0 && errno == EAGAIN;
      return;
    }
    output_.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

void Worker::read_errors() {
  std::array<char, 4096> bytes;
  for (std::size_t all = 0; errors_open_ && all < at_once;) {
    const ssize_t count = ::read(process_->errors(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      errors_open_ = count < 0 && errno == EAGAIN;
      return;
    }
    words_.add({bytes.data(), static_cast<std::size_t>(count)});
    all += static_cast<std::size_t>(count);
  }
}

std::optional<RuleResult> Worker::advance(Time now) {
  check(busy(), "only a worker that was asked can answer");
  const bool over = ready(process_->ending(), POLLIN) !=
                    0;  // asked before the output is read: what it wrote last is not lost
  if (listens_) send();
  read_errors();
  read_output();
  if (const auto end = output_.find('\n'); end != output_.npos && end <= longest_answer())
    return look_at(end, now);
  if (output_.size() > longest_answer())
    return failed(Errc::full, FailureKind::flood,
                  cat("more than ", options_->answer_kb, " KiB without the end of a line"), now);
  if (over || !output_open_ || !listens_) return ended(now);
  if (now >= question_->deadline)
    return failed(Errc::timeout, FailureKind::timeout, cat("no answer after ", patience(), " s"),
                  now);
  return std::nullopt;
}

std::optional<RuleResult> Worker::weigh(const sandbox::Census& census, Time now) {
  const std::uint64_t weight = census.memory(process_->id()) >> 20,
                      most = static_cast<std::uint64_t>(options_->limits.memory_mb);
  if (weight <= most) return std::nullopt;
  return failed(Errc::full, FailureKind::memory,
                cat("it holds ", weight, " MiB with all that it started, more than the ", most,
                    " of memory_mb"),
                now);
}

std::optional<RuleResult> Worker::look_at(std::size_t line_end, Time now) {
  const auto malformed = [&](const std::string& what) {
    return failed(Errc::bad_input, FailureKind::malformed, what, now);
  };
  auto answer = read_answer(std::string_view(output_).substr(0, line_end));
  if (!answer) return malformed(answer.error().what);
  const auto id = static_cast<std::int64_t>(question_->id);
  if (answer->id < id && !fresh_) return again(now);
  if (answer->id != id)
    return malformed(cat("the answer's id is ", answer->id, ", the question's is ", id));
  if (question_->sent < question_->line.size())
    return malformed("it answered before it had read the question");
  if (output_.size() > line_end + 1)
    return malformed(cat("it goes on after its answer: ",
                         quote(std::string_view(output_).substr(line_end + 1))));
  output_.clear();
  question_.reset();
  fresh_ = false;
  failures_ = 0;
  if (options_->fresh) process_.reset();
  return std::move(answer->scored);
}

std::optional<RuleResult> Worker::ended(Time now) {
  const bool alive = ready(process_->ending(), POLLIN, last_moments_ms) == 0;
  read_errors();
  if (alive)
    return failed(Errc::closed, FailureKind::crash,
                  cat("it closed its standard ", output_open_ ? "input" : "output"), now);
  const auto ending = process_->kill();
  if (ending.status == 0 && output_.empty() && !fresh_) return again(now);
  const std::uint64_t peak = ending.peak_memory >> 20,
                      most = static_cast<std::uint64_t>(options_->limits.memory_mb);
  const std::string grown =
      2 * peak > most ? cat(", grown to ", peak, " of its ", most, " MiB") : "";
  return failed(Errc::closed, FailureKind::crash,
                cat("it ", ending.text(), " without an answer", grown), now);
}

RuleResult Worker::failed(Errc code, FailureKind kind, const std::string& what, Time now) {
  const std::string last = words_.last();
  process_.reset();
  question_.reset();
  rested_ = now + pause_after(++failures_);
  return failure(code, kind,
                 cat(what, last.empty() ? "" : cat("; its last words: ", quote(last, 300))));
}

}  // namespace troupe::actors::rules
