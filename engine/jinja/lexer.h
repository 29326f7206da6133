// Template source to tokens, with Jinja2's rules for white space (trim_blocks and lstrip_blocks on,
// as transformers sets it up).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace troupe::engine::jinja {

struct Token {
  enum class Kind {
    text,
    variable_begin,
    variable_end,
    block_begin,
    block_end,
    name,
    string,
    integer,
    real,
    op,
    end
  };
  Kind kind = Kind::end;
  std::string text;  ///< names, operators, digits; strings with their escapes undone
  int line = 1;
};

/// Throws Failure (Errc::bad_input) with the line.
std::vector<Token> tokenize(std::string source);

}  // namespace troupe::engine::jinja
