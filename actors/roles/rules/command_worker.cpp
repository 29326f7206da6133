#include "actors/roles/rules/command_worker.h"

#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "actors/roles/rules/json_lines.h"
#include "engine/base/errors/check.h"
#include "engine/base/log/log.h"
#include "engine/base/processes/pipe.h"
#include "engine/base/text/text.h"

namespace troupe::actors::rules {

namespace {

constexpr std::size_t max_line_bytes = 1024, max_tail_bytes = 300;

}  // namespace

void StderrLog::add(std::string_view text) {
  tail_ += text.substr(text.size() - std::min(text.size(), max_tail_bytes));
  if (tail_.size() > max_tail_bytes) tail_.erase(0, tail_.size() - max_tail_bytes);
  while (!text.empty() && std::cmp_less(lines_.size(), left_)) {
    const auto end = text.find('\n');
    const auto piece = text.substr(0, end);
    line_ += piece.substr(0, max_line_bytes - std::min(line_.size(), max_line_bytes));
    if (end == text.npos) return;
    end_line();
    text.remove_prefix(end + 1);
  }
}

void StderrLog::end_line() {
  if (!line_.empty()) lines_.push_back(std::move(line_));
  line_.clear();
}

void StderrLog::flush() {
  if (!lines_.empty() && history_->insert(lines_)) {
    for (const std::string& line : lines_) log_info(cat(name_, ": ", line));
    left_ -= static_cast<int>(lines_.size());
    if (left_ == 0) log_info(cat(name_, ": what else it writes on standard error is not logged"));
  }
  lines_.clear();
}

bool StderrHistory::insert(const std::vector<std::string>& lines) {
  constexpr std::size_t max_outputs = 4096;
  return hashes_.size() < max_outputs &&
         hashes_.insert(std::hash<std::string>()(join(lines, "\n"))).second;
}

std::string StderrLog::last() const {
  const auto end = tail_.find_last_not_of(" \n\r\t");
  return end == tail_.npos ? "" : tail_.substr(0, end + 1);
}

namespace {

using std::chrono::milliseconds;

// A process that closed a stream usually exits soon, and its exit status is the better message.
constexpr milliseconds exit_grace{200};
constexpr std::size_t max_read_bytes = 64 << 10;

std::chrono::steady_clock::duration seconds(double count) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(count));
}

bool ready(int descriptor) {
  return wait_readable(descriptor, {});
}

}  // namespace

milliseconds restart_delay(int failures) {
  if (failures < 3) return milliseconds(0);
  return std::min(milliseconds(10 << std::min(failures - 3, 10)), milliseconds(200));
}

tl::unexpected<RuleError> failure(Errc code, FailureKind kind, const std::string& what) {
  const auto name = names_of(kind)[static_cast<std::size_t>(kind)];
  return tl::unexpected<RuleError>(RuleError({code, cat(name, ": ", what)}, kind));
}

Result<> Worker::start(Time now) {
  if (process_ && reusable()) return {};
  if (process_) report_idle_end(process_->kill());
  process_.reset();
  auto started = sandbox::Process::start(*helpers_, *plan_);
  if (!started) {
    next_start_ = now + restart_delay(++failures_);
    return fail(started);
  }
  process_.emplace(std::move(*started));
  stderr_log_.begin();
  output_.clear();
  output_open_ = errors_open_ = accepts_input_ = fresh_ = true;
  return {};
}

// Why the helper killed a process, and which failure that is; nothing if it did not.
std::optional<std::pair<FailureKind, std::string>> Worker::limit_exceeded(
    const sandbox::ExitStatus& exit) const {
  const sandbox::Limits& limits = options_->limits;
  using sandbox::Exceeded;
  switch (exit.exceeded) {
    case Exceeded::memory:
      return {{FailureKind::memory, cat("it and its descendants hold ", exit.used >> 20,
                                        " MiB, more than memory_mb = ", limits.memory_mb)}};
    case Exceeded::unreadable:
      return {{FailureKind::memory, "the memory of one of its processes cannot be counted"}};
    case Exceeded::files:
      return {{FailureKind::flood, cat("its files hold more than file_mb = ", limits.file_mb)}};
    case Exceeded::processor:
      return {{FailureKind::timeout,
               cat("it and its descendants used ", exit.used,
                   " s of processor time, more than cpu_seconds = ", limits.cpu_seconds)}};
    case Exceeded::nothing:
      break;
  }
  return std::nullopt;
}

// A process that was killed between two requests costs no reward, but is worth a few lines.
void Worker::report_idle_end(const sandbox::ExitStatus& exit) {
  const auto exceeded = limit_exceeded(exit);
  if (exceeded && idle_reports_-- > 0)
    log_warning(cat(where_, ": killed between two completions: ", exceeded->second));
}

// True when the process runs, reads its input, has no unread output and has processor time left.
bool Worker::reusable() const {
  if (options_->fresh || ready(process_->exited()) || ready(process_->output()) ||
      !output_.empty() || ready(process_->input()))
    return false;
  const auto used = process_->processor_seconds();
  return used && *used < 0.5 * options_->limits.cpu_seconds;
}

Result<> Worker::ask(std::size_t index, std::span<const protocol::RewardRequest> requests,
                     Time now) {
  check(!busy(), "a worker handles one request at a time");
  const bool group = options_->group || requests.empty();
  check(group || requests.size() == 1, "only a group has several completions");
  RETURN_IF_ERROR(start(now));
  ++last_id_;
  request_ = Request{
      .index = index,
      .id = last_id_,
      .line = group ? encode_group(last_id_, requests) : encode_request(last_id_, requests[0]),
      .count = requests.size(),
      .group = group,
      .deadline = now + seconds(timeout_seconds())};
  send();
  return {};
}

// Retries the request with a new process, after the old one exited or wrote output that belonged to
// an earlier request.
std::optional<Answer> Worker::retry(Time now) {
  process_.reset();
  request_->sent = 0;
  if (auto started = start(now); !started) {
    request_.reset();
    return failure(started.error().code, FailureKind::crash, started.error().what);
  }
  request_->deadline = now + seconds(timeout_seconds());
  send();
  return std::nullopt;
}

std::array<WatchedDescriptor, 4> Worker::watched() const {
  const bool unsent = accepts_input_ && request_->sent < request_->line.size();
  return {WatchedDescriptor{unsent ? process_->input() : -1, true},
          WatchedDescriptor{output_open_ ? process_->output() : -1},
          WatchedDescriptor{errors_open_ ? process_->errors() : -1},
          WatchedDescriptor{process_->exited()}};
}

void Worker::send() {
  while (request_->sent < request_->line.size()) {
    const ssize_t taken = process_->write(std::string_view(request_->line).substr(request_->sent));
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) {
      accepts_input_ = errno == EAGAIN;
      return;
    }
    request_->sent += static_cast<std::size_t>(taken);
  }
}

// Reads at most one byte more than the longest response, which shows that a response is too long.
void Worker::read_output() {
  std::array<char, 4096> bytes;
  while (output_.size() <= max_response_bytes()) {
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
  for (std::size_t all = 0; errors_open_ && all < max_read_bytes;) {
    const ssize_t count = ::read(process_->errors(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      errors_open_ = count < 0 && errno == EAGAIN;
      return;
    }
    stderr_log_.add({bytes.data(), static_cast<std::size_t>(count)});
    all += static_cast<std::size_t>(count);
  }
}

std::optional<Answer> Worker::advance(Time now) {
  check(busy(), "advance() needs a request in progress");
  // Checked before reading, so that the last output of an exited process is not lost.
  const bool over = ready(process_->exited());
  if (accepts_input_) send();
  read_errors();
  read_output();
  if (const auto end = output_.find('\n'); end != output_.npos && end <= max_response_bytes())
    return parse_response(end, now);
  if (output_.size() > max_response_bytes())
    return failed(Errc::full, FailureKind::flood,
                  cat("more than ", options_->answer_kb, " KiB without a newline"), now);
  if (over || !output_open_ || !accepts_input_) return handle_exit(now);
  if (now >= request_->deadline)
    return failed(Errc::timeout, FailureKind::timeout,
                  cat("no answer after ", timeout_seconds(), " s",
                      fresh_ && !options_->fresh ? cat("; ", options_->advice) : ""),
                  now);
  return std::nullopt;
}

std::optional<Answer> Worker::parse_response(std::size_t line_end, Time now) {
  const auto malformed = [&](const std::string& what) {
    return failed(Errc::bad_input, FailureKind::malformed, what, now);
  };
  const std::string_view line = std::string_view(output_).substr(0, line_end);
  auto answer = request_->group ? parse_group_answer(line, request_->count) : parse_answer(line);
  if (!answer) return malformed(answer.error().what);
  const auto id = static_cast<std::int64_t>(request_->id);
  if (answer->id < id && !fresh_) return retry(now);
  if (answer->id != id)
    return malformed(cat("the answer's id is ", answer->id, ", the request's is ", id));
  if (request_->sent < request_->line.size())
    return malformed("it answered before reading the request");
  if (output_.size() > line_end + 1)
    return malformed(cat("it wrote more than one line: ",
                         quote(std::string_view(output_).substr(line_end + 1))));
  output_.clear();
  stderr_log_.flush();
  request_.reset();
  fresh_ = false;
  failures_ = 0;
  if (options_->fresh) process_.reset();
  if (!answer->error.empty())
    return failure(Errc::bad_input, FailureKind::crash, quote(answer->error, 400));
  return std::vector<RuleResult>(std::move_iterator(answer->scored.begin()),
                                 std::move_iterator(answer->scored.end()));
}

std::optional<Answer> Worker::handle_exit(Time now) {
  const bool alive = !wait_readable(process_->exited(), exit_grace);
  read_errors();
  // A killed process with much memory ends after its streams are closed.
  const auto exit = process_->kill();
  if (exit.helper_lost)
    return failed(Errc::closed, FailureKind::crash,
                  "it was killed, because the process that runs reward programs "
                  "(troupe-sandbox) ended or did not answer",
                  now);
  if (const auto exceeded = limit_exceeded(exit))
    return failed(Errc::full, exceeded->first, exceeded->second, now);
  if (alive)
    return failed(Errc::closed, FailureKind::crash,
                  cat("it closed its standard ", output_open_ ? "input" : "output"), now);
  if (exit.status == 0 && output_.empty() && !fresh_) return retry(now);
  const std::uint64_t peak = exit.peak_memory >> 20,
                      limit = static_cast<std::uint64_t>(options_->limits.memory_mb);
  const std::string grown =
      2 * peak > limit ? cat("; its memory peaked at ", peak, " of ", limit, " MiB") : "";
  return failed(Errc::closed, FailureKind::crash,
                cat("it ", exit.text(), " without an answer", grown,
                    exit.status == 0 ? cat("; ", options_->advice) : ""),
                now);
}

Answer Worker::failed(Errc code, FailureKind kind, const std::string& what, Time now) {
  const std::string last = stderr_log_.last();
  stderr_log_.end();
  process_.reset();
  request_.reset();
  next_start_ = now + restart_delay(++failures_);
  return failure(
      code, kind,
      cat(what, last.empty() ? "" : cat("; its standard error ended with: ", quote(last, 300))));
}

}  // namespace troupe::actors::rules
