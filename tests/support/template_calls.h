// Random templates that call the filters, tests and methods of the template language with arguments
// of every type.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "engine/base/text/text.h"
#include "engine/jinja/filters.h"
#include "engine/jinja/string_methods.h"
#include "engine/jinja/tests.h"

namespace troupe::testing_support {

/// Expressions of values of every type.
inline const std::vector<std::string>& value_expressions() {
  static const std::vector<std::string> all = {
      "none",
      "true",
      "false",
      "0",
      "1",
      "2",
      "-1",
      "5",
      "80",
      "9223372036854775807",
      "4611686018427387905",
      "(-9223372036854775807 - 1)",
      "1.5",
      "-0.0",
      "1e308",
      "(1e308 * 10)",
      "((1e308 * 10) - (1e308 * 10))",
      "''",
      "'a'",
      "'e'",
      "' a b  c '",
      "'abcdefghijklmnopqrstuvwxyz'",
      "'\u00e9\U0001F600\u0301'",
      "'\U0001F600'",
      "'x,y.z'",
      "'%s %(a)d %*d %.9f'",
      "'{} {0} {a!r:>9} {:=+,.3}'",
      "'-12'",
      "'0x1F'",
      "'utf-8'",
      "'upper'",
      "'defined'",
      "'\\n\\t a\\r\\n'",
      "('a' * 3000)",
      "('abc def ghi jkl'|safe)",
      "('<b>&\"'|e)",
      "missing",
      "missing_too.attribute",
      "[]",
      "[1, 2, 3]",
      "['b', 'A', none, 2.5]",
      "[[1, 'x'], [2, 'y']]",
      "(1, 'a')",
      "()",
      "{}",
      "{'a': 1, 'b': {'c': [2]}}",
      "{1: 2, none: 3, (1, 2): 'z'}",
      "[{'a': 2}, {'a': 1}, {'b': 0}]",
      "range(5)",
      "range(5, -5, -3)",
      "([3, 1, 2]|map('string'))",
      "([3, 1]|select)",
      "{'k': 'v'}.items()",
      "{'k': 'v'}.keys()",
      "namespace(a=1)",
      "cycler('a', 2)",
      "joiner()",
      "'a'.upper",
      "[1].index",
      "{}.get",
      "range",
      "messages",
      "m",
  };
  return all;
}

/// `choose(n)` returns a number below n.
template <class Choose>
std::string random_value(Choose& choose) {
  const auto& all = value_expressions();
  return all[choose(all.size())];
}

template <class Choose>
std::string random_arguments(Choose& choose) {
  static constexpr std::array names = {
      "width", "first",    "length",   "killwords", "end",        "leeway",       "attribute",
      "by",    "reverse",  "d",        "default",   "base",       "precision",    "method",
      "count", "old",      "new",      "chars",     "linecount",  "fill_with",    "slices",
      "sep",   "maxsplit", "keepends", "start",     "separators", "ensure_ascii", "indent"};
  std::string out;
  for (std::size_t left = choose(5); left > 0; --left) {
    if (!out.empty()) out += ", ";
    if (choose(4) == 0 && left <= 2)
      out += cat(names[choose(names.size())], "=");
    else if (out.find('=') != std::string::npos)
      out += cat(names[choose(names.size())], "=");
    out += random_value(choose);
  }
  return out;
}

/// One call, and what is made of its result.
template <class Choose>
std::string random_call(Choose& choose) {
  static const auto filters = engine::jinja::filter_names();
  static const auto tests = engine::jinja::test_names();
  static const auto methods = engine::jinja::string_method_names();
  static constexpr std::array others = {"items", "keys",  "values", "get",  "copy",
                                        "index", "count", "start",  "next", "append"};
  const std::string value = random_value(choose), arguments = random_arguments(choose);
  std::string call;
  switch (choose(5)) {
    case 0:
    case 1:
      call = cat(value, "|", filters[choose(filters.size())], "(", arguments, ")");
      break;
    case 2: {
      const std::string_view name = tests[choose(tests.size())];
      const bool sign = std::string_view("=!<>").find(name[0]) != std::string_view::npos;
      call = cat("(", value, " is ", sign ? "eq" : name, "(", arguments, "))");
      break;
    }
    case 3:
      call = cat(value, ".", methods[choose(methods.size())], "(", arguments, ")");
      break;
    default:
      call = choose(2) ? cat(value, ".", others[choose(others.size())], "(", arguments, ")")
                       : cat(value, "[", random_value(choose), ":", random_value(choose), "]");
  }
  static constexpr std::array uses = {"{{ ",          " }}",
                                      "{% for x in ", " %}{{ x }}{{ loop.index }}{% endfor %}",
                                      "{% set y = ",  " %}{{ y|list }}{{ y }}",
                                      "{{ (",         ")|tojson }}",
                                      "{{ [",         "]|unique|sort|join }}",
                                      "{% if ",       " %}1{% endif %}"};
  const std::size_t use = choose(uses.size() / 2);
  return cat("{% macro m(a, b=1) %}{{ a }}{{ varargs }}{% endmacro %}", uses[2 * use], call,
             uses[2 * use + 1]);
}

}  // namespace troupe::testing_support
