// Code points as bytes of UTF-8. Sequences of bytes that begin alike share nodes, and so do those
// that end in any continuation bytes (Thompson's translation of ranges, as in RE2).
#pragma once

#include <span>
#include <string>
#include <utility>

#include "engine/constraints/grammar.h"

namespace troupe::engine::constraints {

/// Code points, both ends included.
using CodePointRange = std::pair<char32_t, char32_t>;

/// Encoding of the characters that are read: as they are, or as in a JSON string, where quotation
/// marks, backslashes and control characters are escaped.
enum class TextForm { plain, json };

/// Whether a character is written as an escape in JSON strings, and the escape.
bool is_escaped(char32_t c);
std::string json_escape(char32_t value);

/// Adds one of the code points behind `from` and returns the node behind it. `ranges`: in order,
/// without overlaps; surrogates never match, and an empty set matches nothing.
Grammar::Node add_code_points(Grammar& grammar, Grammar::Node from,
                              std::span<const CodePointRange> ranges, TextForm form);

}  // namespace troupe::engine::constraints
