#include "launch/model/json_lines.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <deque>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "engine/base/processes/pipe.h"
#include "engine/base/text/text.h"

namespace troupe::launch::model {

namespace {

// Bounds the memory of the token ids of one line.
constexpr std::size_t max_line = std::size_t{4} << 20;

/// Answers that wait for an earlier one.
constexpr std::size_t max_waiting = 1024;

Json error_line(std::string_view why) {
  std::string text(why);
  std::size_t bad = 0;
  while (!valid_utf8(text, &bad)) text[bad] = '?';
  return Json::Object{{"error", std::move(text)}};
}

/// The lines of stdin. Its own buffer shows whether a whole line has arrived.
class StandardInput {
 public:
  /// The next line without its end; nothing at the end of the input or, without `wait`, while it
  /// has not arrived. A line that is too long is read to its end but not kept.
  Result<std::optional<std::string>> next(bool wait) {
    for (;;) {
      const auto end = std::find(buffer_.begin() + at_, buffer_.end(), '\n');
      keep(end);
      if (end != buffer_.end()) {
        at_ = end - buffer_.begin() + 1;
        return std::exchange(line_, {});
      }
      buffer_.clear();
      at_ = 0;
      if (ended_) return line_.empty() ? std::nullopt : std::optional(std::exchange(line_, {}));
      if (!wait && !wait_readable(STDIN_FILENO, {})) return std::nullopt;
      RETURN_IF_ERROR(fill());
    }
  }
  bool ended() const { return ended_ && line_.empty() && buffer_.empty(); }

 private:
  void keep(std::string::const_iterator end) {
    const auto begin = buffer_.cbegin() + at_;
    const auto room = static_cast<std::ptrdiff_t>(max_line + 1 - line_.size());
    line_.append(begin, begin + std::min(room, end - begin));
  }
  Result<> fill() {
    buffer_.resize(1 << 16);
    const ssize_t count = ::read(STDIN_FILENO, buffer_.data(), buffer_.size());
    buffer_.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    ended_ = count == 0;
    if (count >= 0 || errno == EINTR) return {};
    return fail(Errc::io, cat("cannot read stdin: ", std::strerror(errno),
                              "; expected a file or pipe of lines"));
  }

  std::string buffer_, line_;  // the line may begin in an earlier buffer; one byte above max_line
  std::ptrdiff_t at_ = 0;      // of the buffer, what is not read yet
  bool ended_ = false;
};

Result<Json> parsed(const std::string& line, std::size_t number) {
  const std::string where = cat("line ", number);
  if (line.size() > max_line)
    return fail(Errc::bad_input, cat(where, ": longer than ", max_line, " bytes"));
  auto json = parse_json(line, where);
  RETURN_IF_ERROR(json);
  if (!json->is_object())
    return fail(Errc::bad_input, cat(where, ": expected an object, found ", json->type_name()));
  return json;
}

/// The answers of one line at a time, none of which waits.
class OneAtATime final : public LineAnswers {
 public:
  explicit OneAtATime(const std::function<Result<Json>(const Json&)>& answer) : answer_(answer) {}
  void start(const Json& line, Callback answer) override { answer(answer_(line)); }
  bool has_room() const override { return true; }
  bool idle() const override { return true; }
  void step() override {}

 private:
  const std::function<Result<Json>(const Json&)>& answer_;
};

/// The loop of answer_lines().
class LineLoop {
 public:
  LineLoop(std::ostream& out, LineAnswers& answers) : out_(out), answers_(answers) {}

  Result<> run() {
    while (!input_.ended() || !waiting_.empty()) {
      RETURN_IF_ERROR(read());
      if (!answers_.idle()) answers_.step();
      RETURN_IF_ERROR(write());
    }
    return {};
  }

 private:
  using Answer = std::shared_ptr<std::optional<std::string>>;

  /// Starts a line, or as many as have arrived while others are computed.
  Result<> read() {
    while (!input_.ended() && answers_.has_room() && waiting_.size() < max_waiting) {
      const auto line = input_.next(answers_.idle());
      RETURN_IF_ERROR(line);
      if (!*line) return {};
      start(**line);
      if (*waiting_.back()) return {};  // it is written before the next line is awaited
    }
    return {};
  }

  void start(const std::string& line) {
    const auto slot = std::make_shared<std::optional<std::string>>();
    waiting_.push_back(slot);
    const auto answer = [slot](Result<Json> found) {
      *slot = (found ? std::move(*found) : error_line(found.error().what)).dump();
    };
    try {
      const auto json = parsed(line, ++number_);
      if (json)
        answers_.start(*json, answer);
      else
        answer(fail(json));
    } catch (const std::exception& error) {
      if (!*slot) answer(fail(Errc::internal, error.what()));
    }
  }

  Result<> write() {
    for (; !waiting_.empty() && *waiting_.front(); waiting_.pop_front())
      if (!(out_ << **waiting_.front() << '\n' << std::flush))
        return fail(Errc::io, "cannot write to stdout: the reader has exited or the disk is full");
    return {};
  }

  std::ostream& out_;
  LineAnswers& answers_;
  StandardInput input_;
  std::deque<Answer> waiting_;  // in the order of the lines; empty until they are answered
  std::size_t number_ = 0;
};

}  // namespace

Result<> answer_lines(std::ostream& out, LineAnswers& answers) {
  if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1)
    std::cerr
        << "reading lines of JSON from the terminal; Ctrl-D ends, --help lists what a line may "
           "have\n";
  return LineLoop(out, answers).run();
}

Result<> answer_lines(std::ostream& out, const std::function<Result<Json>(const Json&)>& answer) {
  OneAtATime answers(answer);
  return answer_lines(out, answers);
}

Json number_or_null(double value) {
  if (std::isfinite(value)) return value;
  return nullptr;
}

Result<std::vector<std::int32_t>> ids_of(const Json& line, std::int64_t vocabulary,
                                         std::string_view key) {
  const Json* ids = line.find(key);
  if (!ids || !ids->is_array())
    return fail(Errc::bad_input, cat("the key ", key, " must be a list of token ids"));
  const std::int64_t end =
      vocabulary > 0 ? vocabulary : std::int64_t{std::numeric_limits<std::int32_t>::max()};
  std::vector<std::int32_t> out;
  out.reserve(ids->array().size());
  for (const Json& id : ids->array()) {
    if (!id.is_integer() || id.integer() < 0 || id.integer() >= end) {
      return fail(Errc::bad_input, cat(key, "[", out.size(), "]: expected a token id from 0 to ",
                                       end - 1, ", found ", quote(id.dump())));
    }
    out.push_back(static_cast<std::int32_t>(id.integer()));
  }
  return out;
}

}  // namespace troupe::launch::model
