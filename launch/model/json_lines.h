// The loop of commands that read JSON lines: one line in, one line out, in the order of the input,
// flushed as soon as those before it are written.
#pragma once

#include <functional>
#include <iosfwd>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"

namespace troupe::launch::model {

/// Computes the answers of several lines at a time.
class LineAnswers {
 public:
  using Callback = std::function<void(Result<Json>)>;
  virtual ~LineAnswers() = default;

  /// Starts a line. `answer` is called once: at once, or in one of the next steps. An exception is
  /// the answer of a line that has none yet.
  virtual void start(const Json& line, Callback answer) = 0;
  /// Whether another line may start.
  virtual bool has_room() const = 0;
  /// Whether every line is answered.
  virtual bool idle() const = 0;
  virtual void step() = 0;
};

/// Writes one line to `out` for every line of stdin: the answer, or {"error": "..."} if the line is
/// not JSON, is longer than 4 MiB, or its answer is an error. An error does not end the loop. Lines
/// are read while `answers` has room and no longer than there is input; at most 1024 answers wait
/// for an earlier one. Errc::io if stdin cannot be read or `out` cannot be written.
Result<> answer_lines(std::ostream& out, LineAnswers& answers);
/// The same with one line at a time.
Result<> answer_lines(std::ostream& out, const std::function<Result<Json>(const Json&)>& answer);

/// The number, or null for NaN and infinity, which JSON lacks.
Json number_or_null(double value);

/// The member `key` as token ids in [0, vocabulary); vocabulary 0: any 32-bit id.
/// Errc::bad_input.
Result<std::vector<std::int32_t>> ids_of(const Json& line, std::int64_t vocabulary,
                                         std::string_view key = "ids");

}  // namespace troupe::launch::model
