// Oniguruma's regular expressions (doc/RE of Oniguruma 6.9), translated to PCRE2's as far as
// tokenizers use them.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/errors/error.h"

namespace troupe::engine::tokenizer {

/// Returns the pattern in the syntax of PCRE2. Relevant differences: \s is White_Space, \w is UTS
/// 18's, \h is a hexadecimal digit, (?m) lets the dot match newlines, X{n,m}+ is a repeat of a
/// repeat. Source: Oniguruma doc/RE. Errc::unsupported for nested or intersected classes.
Result<std::string> translate_oniguruma(std::string_view pattern, std::string_view where);

}  // namespace troupe::engine::tokenizer
