// Operations of Python on text, on UTF-8: parts of `str` and of `re`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"
#include "engine/tokenizer/base/regex.h"

namespace troupe::launch::evaluation {

using engine::tokenizer::Regex;

/// A pattern in the syntax of `re`. `where` starts messages. Errc::bad_input, unsupported.
Result<Regex> python_regex(std::string_view pattern, std::string_view where);
/// re.sub(pattern, with, text), `with` without references to groups.
Result<std::string> substitute(const Regex& pattern, std::string_view text, std::string_view with);
/// len(re.split(r"\s+", text)).
std::size_t count_words(std::string_view text);

/// str.replace(), all occurrences of a non-empty text.
std::string replaced(std::string_view text, std::string_view old, std::string_view with);
/// str.strip() and its halves, of white space.
std::string stripped(const std::string& text);
std::string right_stripped(const std::string& text);
/// Whether the first or the last character is white space; false for an empty text.
bool begins_with_space(std::string_view text);
bool ends_with_space(std::string_view text);
/// str() of a value of JSON.
std::string python_text(const Json& value);
/// str.isdigit() for ASCII.
bool is_number(std::string_view text);

}  // namespace troupe::launch::evaluation
