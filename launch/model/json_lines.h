// The loop of commands that read JSON lines: one line in, one line out, flushed at once.
#pragma once

#include <functional>
#include <iosfwd>

#include "engine/base/error.h"
#include "engine/base/json.h"

namespace troupe::launch::model {

/// Writes one line to `out` for every line of `in`: the result of `answer`, or {"error": "..."} if
/// the line is not JSON, is longer than 4 MiB, or `answer` fails or throws. An error does not end
/// the loop. Errc::io if `in` cannot be read or `out` cannot be written.
Result<> answer_lines(std::istream& in, std::ostream& out,
                      const std::function<Result<Json>(const Json& line)>& answer);

/// The number, or null for NaN and infinity, which JSON lacks.
Json number_or_null(double value);

/// The member `key` as token ids in [0, vocabulary); vocabulary 0: any 32-bit id.
/// Errc::bad_input.
Result<std::vector<std::int32_t>> ids_of(const Json& line, std::int64_t vocabulary,
                                         std::string_view key = "ids");

}  // namespace troupe::launch::model
