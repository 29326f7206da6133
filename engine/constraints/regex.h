// Regular expressions in the syntax that Python's re, ECMAScript and RE2 share.
//
// Supported: characters, escapes (\d \w \s \D \W \S, \n \r \t \f \v \0 \xHH \uHHHH, escaped
// punctuation), ., [classes], (groups), (?:groups), |, *, +, ?, {m}, {m,}, {m,n} and their lazy
// forms, ^ at the beginning and $ at the end. An expression describes the whole text. \d, \w and \s
// are ASCII, and so are \D, \W, \S and negated classes with one of these, which keeps the text
// within the meaning of either kind of engine.
#pragma once

#include <string_view>

#include "engine/constraints/code_points.h"

namespace troupe::engine::constraints {

/// How an expression is read.
struct RegexReading {
  /// It may match any part of the text; otherwise it describes the whole.
  bool anywhere = false;
  /// Where engines differ, as what any of them matches; otherwise as what all of them do.
  bool widest = false;
  /// `.` excludes the line ends of ECMAScript.
  bool ecma = false;
};

/// Adds what `pattern` (UTF-8) describes behind `from`, and returns the node behind it. Throws
/// Failure: Errc::bad_input for malformed expressions, unsupported for look-around,
/// back-references, flags, word boundaries and inner anchors, full beyond the bounds. Messages have
/// the position.
Grammar::Node add_regex(Grammar& grammar, Grammar::Node from, std::string_view pattern,
                        TextForm form, RegexReading reading = {});

}  // namespace troupe::engine::constraints
