// The checking tools' loop: one JSON line in, one JSON line out, flushed at once.
#pragma once

#include <functional>
#include <iosfwd>

#include "engine/base/error.h"
#include "engine/base/json.h"

namespace troupe::launch {

/// Answers every line of `in` with one line of `out`: what `answer` returns, or {"error": "..."}
/// when the line is not JSON, is longer than 4 MiB, or `answer` refuses it (a Failure or another
/// exception counts as a refusal). The next line is answered all the same. Errc::io when `in`
/// cannot be read or `out` not be written.
Result<> answer_lines(std::istream& in, std::ostream& out,
                      const std::function<Result<Json>(const Json& line)>& answer);

/// The number, or null when JSON has no word for it (NaN, infinity).
Json number_or_null(double value);

/// The member `key` as token ids in [0, vocabulary); vocabulary 0: any id that fits in 32 bits.
/// Errc::bad_input.
Result<std::vector<std::int32_t>> ids_of(const Json& line, std::int64_t vocabulary,
                                         std::string_view key = "ids");

}  // namespace troupe::launch
