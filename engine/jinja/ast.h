// The syntax tree of a template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/jinja/value.h"

namespace troupe::engine::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

/// A keyword argument name=value; with an empty name, *value, and with the name "**", **value.
struct Keyword {
  std::string name;
  ExprPtr value;
};

struct Expr {
  enum class Kind {
    literal,    ///< value
    name,       ///< text
    list,       ///< parts
    tuple,      ///< parts
    dict,       ///< parts: key, value, key, value...
    attribute,  ///< parts[0].text
    item,       ///< parts[0][parts[1]]
    slice,      ///< parts[0][parts[1]:parts[2]:parts[3]], each of the last three may be null
    call,       ///< parts[0](parts[1..], keywords)
    filter,     ///< parts[0] | text(parts[1..], keywords); parts[0] is null in a filter block
    test,       ///< parts[0] is text(parts[1..], keywords); negated
    negate,
    plus,
    logical_not,  ///< parts[0]
    binary,       ///< parts[0] text parts[1]
    compare,      ///< parts[0] operators[0] parts[1] operators[1] parts[2]...
    logical_and,
    logical_or,  ///< parts[0], parts[1]
    conditional  ///< parts[0] if parts[1] else parts[2] (may be null)
  };
  Kind kind = Kind::literal;
  int line = 0;
  int height = 1;  ///< of the tree below: bounded, because evaluation recurses
  std::string text;
  Value value;
  bool negated = false;
  std::vector<ExprPtr> parts;
  std::vector<Keyword> keywords;
  std::vector<std::string> operators;
};

struct Stmt;
using StmtPtr = std::unique_ptr<Stmt>;
using Block = std::vector<StmtPtr>;

/// A macro's parameter; `otherwise` may be null.
struct Parameter {
  std::string name;
  ExprPtr otherwise;
};

struct Stmt {
  enum class Kind {
    text,        ///< text
    print,       ///< expr
    if_,         ///< expr, body, otherwise (an elif is an if in otherwise)
    for_,        ///< target, expr (the iterable), condition, body, otherwise; recursive
    set,         ///< target, expr
    set_block,   ///< target, filters (expr, may be null), body
    with,        ///< assignments, body
    macro,       ///< text (name), parameters, body
    call,        ///< expr (a call), parameters, body
    filter,      ///< expr (filters with a null start), body
    generation,  ///< body
    break_,
    continue_
  };
  Kind kind = Kind::text;
  int line = 0;
  std::string text;
  ExprPtr target, expr, condition;
  bool recursive = false;
  bool uses_caller = false, uses_kwargs = false,
       uses_varargs = false;  ///< of macros and calls: the body names them
  Block body, otherwise;
  std::vector<std::pair<ExprPtr, ExprPtr>> assignments;
  std::vector<Parameter> parameters;
};

}  // namespace troupe::engine::jinja
