// Tests: what may stand after `is`.
#include <map>

#include "engine/base/text.h"
#include "engine/tokenizer/jinja/case.h"
#include "engine/tokenizer/jinja/machine.h"

namespace troupe::engine::tokenizer::jinja {
namespace {

using Type = Value::Type;
using M = Machine;
using V = Value;
using A = Arguments;

const Value& other(const Arguments& arguments) {
  if (arguments.positional.empty()) raise("a test is missing its argument");
  return arguments.positional[0];
}

template <char Kind>
bool relation(M& machine, const V& value, A& arguments) {
  constexpr const char* op = Kind == '='   ? "=="
                             : Kind == '!' ? "!="
                             : Kind == '<' ? "<"
                             : Kind == '>' ? ">"
                             : Kind == 'l' ? "<="
                             : Kind == 'g' ? ">="
                                           : "in";
  return compare(machine, op, value, other(arguments));
}

template <Type Wanted>
bool is_type(M&, const V& value, A&) {
  return value.is(Wanted);
}

bool divisible(M& machine, const V& value, A& arguments) { return equal(binary(machine, "%", value, other(arguments)), Value(0)); }
bool parity(M& machine, const V& value, std::int64_t wanted) { return equal(binary(machine, "%", value, 2), Value(wanted)); }

const std::map<std::string_view, TestBody>& table() {
  static const std::map<std::string_view, TestBody> tests = {
      {"defined", [](M&, const V& v, A&) { return !v.is(Type::undefined); }},
      {"undefined", is_type<Type::undefined>},
      {"none", is_type<Type::none>},
      {"boolean", is_type<Type::boolean>},
      {"true", [](M&, const V& v, A&) { return v.is(Type::boolean) && v.boolean(); }},
      {"false", [](M&, const V& v, A&) { return v.is(Type::boolean) && !v.boolean(); }},
      {"integer", is_type<Type::integer>},
      {"float", is_type<Type::real>},
      {"number", [](M&, const V& v, A&) { return v.is_number(); }},
      {"string", is_type<Type::string>},
      {"mapping", is_type<Type::dict>},
      {"iterable", [](M&, const V& v, A&) { return v.is(Type::list) || v.is(Type::dict) || v.is(Type::string) || v.is(Type::undefined); }},
      {"sequence",
       [](M&, const V& v, A&) {
         return (v.is(Type::list) && v.list().indexable()) || v.is(Type::dict) || v.is(Type::string) || v.is(Type::undefined);
       }},
      {"callable", [](M&, const V& v, A&) { return v.is(Type::object) && v.object()->callable(); }},
      {"sameas", [](M&, const V& v, A& a) { return v.same(other(a)); }},
      {"odd", [](M& m, const V& v, A&) { return parity(m, v, 1); }},
      {"even", [](M& m, const V& v, A&) { return parity(m, v, 0); }},
      {"divisibleby", divisible},
      {"lower", [](M& m, const V& v, A&) { return lower(m.text(v)) == m.text(v) && upper(m.text(v)) != m.text(v); }},
      {"upper", [](M& m, const V& v, A&) { return upper(m.text(v)) == m.text(v) && lower(m.text(v)) != m.text(v); }},
      {"escaped", [](M&, const V&, A&) { return false; }},
      {"filter",
       [](M&, const V& v, A&) {
         return v.is(Type::string) && (find_text_filter(v.string()) || find_list_filter(v.string()) || find_value_filter(v.string()));
       }},
      {"test", [](M&, const V& v, A&) { return v.is(Type::string) && find_test(v.string()); }},
      {"in", relation<'i'>},
      {"eq", relation<'='>},
      {"equalto", relation<'='>},
      {"==", relation<'='>},
      {"ne", relation<'!'>},
      {"!=", relation<'!'>},
      {"lt", relation<'<'>},
      {"lessthan", relation<'<'>},
      {"<", relation<'<'>},
      {"gt", relation<'>'>},
      {"greaterthan", relation<'>'>},
      {">", relation<'>'>},
      {"le", relation<'l'>},
      {"<=", relation<'l'>},
      {"ge", relation<'g'>},
      {">=", relation<'g'>},
  };
  return tests;
}

}  // namespace

TestBody find_test(std::string_view name) {
  const auto found = table().find(name);
  return found == table().end() ? nullptr : found->second;
}

}  // namespace troupe::engine::tokenizer::jinja
