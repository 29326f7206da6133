#include "engine/jinja/tests.h"

#include <map>

#include "engine/base/text/text.h"
#include "engine/jinja/case.h"
#include "engine/jinja/filters.h"
#include "engine/jinja/operators.h"
#include "engine/jinja/runtime.h"

namespace troupe::engine::jinja {
namespace {

using Type = Value::Type;
using M = Runtime;
using V = Value;
using A = Arguments;

// The only argument, positional or by any name.
const Value& other(const Arguments& arguments) {
  return arguments.positional.empty() ? arguments.keyword.at(0).second : arguments.positional[0];
}

template <char Kind>
bool relation(M& runtime, const V& value, A& arguments) {
  constexpr const char* op = Kind == '='   ? "=="
                             : Kind == '!' ? "!="
                             : Kind == '<' ? "<"
                             : Kind == '>' ? ">"
                             : Kind == 'l' ? "<="
                             : Kind == 'g' ? ">="
                                           : "in";
  return compare(runtime, op, value, other(arguments));
}

template <Type Wanted>
bool is_type(M&, const V& value, A&) {
  return value.is(Wanted);
}

bool divisible(M& runtime, const V& value, A& arguments) {
  return equal(binary(runtime, "%", value, other(arguments)), Value(0));
}
bool parity(M& runtime, const V& value, std::int64_t wanted) {
  return equal(binary(runtime, "%", value, 2), Value(wanted));
}

bool iterable(M&, const V& value, A&) {
  return value.is(Type::list) || value.is(Type::dict) || value.is(Type::string) ||
         value.is(Type::undefined) || (value.is(Type::object) && value.object()->items_inside());
}
bool sequence(M&, const V& value, A&) {
  return (value.is(Type::list) && value.list().indexable()) || value.is(Type::dict) ||
         value.is(Type::string) || value.is(Type::undefined);
}
bool callable(M&, const V& value, A&) {
  return value.is(Type::undefined) || (value.is(Type::object) && value.object()->callable());
}

using TestTable = std::map<std::string_view, Test>;

const TestTable& type_tests() {
  static const TestTable tests = {
      {"defined", {[](M&, const V& v, A&) { return !v.is(Type::undefined); }, ""}},
      {"undefined", {is_type<Type::undefined>, ""}},
      {"none", {is_type<Type::none>, ""}},
      {"boolean", {is_type<Type::boolean>, ""}},
      {"true", {[](M&, const V& v, A&) { return v.is(Type::boolean) && v.boolean(); }, ""}},
      {"false", {[](M&, const V& v, A&) { return v.is(Type::boolean) && !v.boolean(); }, ""}},
      {"integer", {is_type<Type::integer>, ""}},
      {"float", {is_type<Type::real>, ""}},
      {"number", {[](M&, const V& v, A&) { return v.is_number(); }, ""}},
      {"string", {is_type<Type::string>, ""}},
      {"mapping", {is_type<Type::dict>, ""}},
      {"iterable", {iterable, ""}},
      {"sequence", {sequence, ""}},
      {"callable", {callable, "*"}},
      {"escaped", {[](M&, const V& v, A&) { return v.is_markup(); }, ""}},
  };
  return tests;
}

const TestTable& value_tests() {
  static const TestTable tests = {
      {"sameas", {[](M&, const V& v, A& a) { return v.same(other(a)); }, "other"}},
      {"odd", {[](M& m, const V& v, A&) { return parity(m, v, 1); }, ""}},
      {"even", {[](M& m, const V& v, A&) { return parity(m, v, 0); }, ""}},
      {"divisibleby", {divisible, "num"}},
      {"lower", {[](M& m, const V& v, A&) { return is_lower(m.text(v)); }, ""}},
      {"upper", {[](M& m, const V& v, A&) { return is_upper(m.text(v)); }, ""}},
      {"filter",
       {[](M&, const V& v, A&) {
          require_hashable(v);
          return v.is(Type::string) && find_filter(v.string());
        },
        ""}},
      {"test",
       {[](M&, const V& v, A&) {
          require_hashable(v);
          return v.is(Type::string) && find_test(v.string());
        },
        ""}},
  };
  return tests;
}

const TestTable& comparison_tests() {
  static const TestTable tests = {
      {"in", {relation<'i'>, "seq"}},
      {"eq", {relation<'='>, "/ other"}},
      {"equalto", {relation<'='>, "/ other"}},
      {"==", {relation<'='>, "/ other"}},
      {"ne", {relation<'!'>, "/ other"}},
      {"!=", {relation<'!'>, "/ other"}},
      {"lt", {relation<'<'>, "/ other"}},
      {"lessthan", {relation<'<'>, "/ other"}},
      {"<", {relation<'<'>, "/ other"}},
      {"gt", {relation<'>'>, "/ other"}},
      {"greaterthan", {relation<'>'>, "/ other"}},
      {">", {relation<'>'>, "/ other"}},
      {"le", {relation<'l'>, "/ other"}},
      {"<=", {relation<'l'>, "/ other"}},
      {"ge", {relation<'g'>, "/ other"}},
      {">=", {relation<'g'>, "/ other"}},
  };
  return tests;
}

}  // namespace

const Test* find_test(std::string_view name) {
  for (const auto* table : {&type_tests(), &value_tests(), &comparison_tests()})
    if (const auto found = table->find(name); found != table->end()) return &found->second;
  return nullptr;
}

std::vector<std::string_view> test_names() {
  std::vector<std::string_view> out;
  for (const auto* table : {&type_tests(), &value_tests(), &comparison_tests()})
    for (const auto& [name, test] : *table) out.push_back(name);
  return out;
}

}  // namespace troupe::engine::jinja
