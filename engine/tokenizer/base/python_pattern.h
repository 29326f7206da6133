// Regular expressions of Python's re module (3.11), translated to PCRE2's.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/errors/error.h"

namespace troupe::engine::tokenizer {

/// The pattern in the syntax of PCRE2. Relevant differences: \Z is the end of the text, \v one
/// character, \s has the separators 0x1C to 0x1F, {,n} is a repeat, [ in a class is itself.
/// Errc::bad_input for escapes that Python refuses; Errc::unsupported for (?a), (?L), named
/// characters and constructs that only PCRE2 has.
Result<std::string> translate_python(std::string_view pattern, std::string_view where);

}  // namespace troupe::engine::tokenizer
