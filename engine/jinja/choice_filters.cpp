// map, select, reject, selectattr, rejectattr.
#include <map>

#include "engine/base/text.h"
#include "engine/jinja/sequences.h"

namespace troupe::engine::jinja {

Value list_of(std::vector<Value> items) {
  List out;
  out.items = std::move(items);
  return out;
}

Value dotted(Machine& machine, const Value& item, const Value& path, const Value* otherwise) {
  if (path.is_integral()) {
    Value out = machine.item(item, path);
    return out.is(Value::Type::undefined) && otherwise ? *otherwise : out;
  }
  const std::string& text = to_text(path, "attribute");
  Value out = item;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('.', at), text.size());
    const std::string part = text.substr(at, end - at);
    const bool number = !part.empty() && part.size() < 9 &&
                        part.find_first_not_of("0123456789") == std::string::npos;
    out =
        machine.item(out, number ? Value(static_cast<std::int64_t>(std::stol(part))) : Value(part));
    if (out.is(Value::Type::undefined) && otherwise) out = *otherwise;
    at = end + 1;
  }
  return out;
}

namespace {

using Type = Value::Type;

Arguments behind(const Arguments& arguments, std::size_t count) {
  Arguments out;
  if (arguments.positional.size() > count)
    out.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(count),
                          arguments.positional.end());
  out.keyword = arguments.keyword;
  return out;
}

// map(attribute="a.b", default=...)
void map_attribute(Machine& machine, const Value& value, const Arguments& arguments,
                   std::vector<Value>& out) {
  const Value *attribute = nullptr, *otherwise = nullptr;
  for (const auto& [name, given] : arguments.keyword) {
    if (name != "attribute" && name != "default")
      raise(cat("Unexpected keyword argument '", name, "'"));
    (name == "attribute" ? attribute : otherwise) = &given;
  }
  if (!attribute) raise("map requires a filter argument");
  if (otherwise && otherwise->is(Type::none)) otherwise = nullptr;
  for (const Value& item : machine.items_of(value))
    out.push_back(dotted(machine, item, *attribute, otherwise));
}

Value map_filter(Machine& machine, const Value& value, Arguments& arguments) {
  return generator([&](std::vector<Value>& out) {
    if (!value.truth()) return;
    if (arguments.positional.empty()) return map_attribute(machine, value, arguments, out);
    const std::string& name = to_text(arguments.positional[0], "a filter's name");
    const Arguments rest = behind(arguments, 1);
    for (const Value& item : machine.items_of(value)) {
      Arguments own = rest;
      out.push_back(machine.filter(name, item, own));
    }
  });
}

// Keep where the test holds, or where it does not.
Value pick(Machine& machine, const Value& value, const Arguments& arguments, bool by_attribute,
           bool keep) {
  return generator([&](std::vector<Value>& out) {
    if (!value.truth()) return;
    const std::size_t first = by_attribute ? 1 : 0;
    const auto& given = arguments.positional;
    if (given.size() < first) raise("Missing parameter for attribute name");
    const bool tested = given.size() > first;
    const Arguments rest = behind(arguments, first + 1);
    for (Value& item : machine.items_of(value)) {
      const Value subject = by_attribute ? dotted(machine, item, given[0]) : item;
      Arguments own = rest;
      const bool holds = tested ? machine.test(to_text(given[first], "a test's name"), subject, own)
                                : subject.truth();
      if (holds == keep) out.push_back(std::move(item));
    }
  });
}

}  // namespace

const Filter* find_choice_filter(std::string_view name) {
  using M = Machine;
  using V = Value;
  using A = Arguments;
  static const std::map<std::string_view, Filter> table = {
      {"map", {map_filter, "*"}},
      {"select", {[](M& m, const V& v, A& a) { return pick(m, v, a, false, true); }, "*"}},
      {"reject", {[](M& m, const V& v, A& a) { return pick(m, v, a, false, false); }, "*"}},
      {"selectattr", {[](M& m, const V& v, A& a) { return pick(m, v, a, true, true); }, "*"}},
      {"rejectattr", {[](M& m, const V& v, A& a) { return pick(m, v, a, true, false); }, "*"}},
  };
  const auto found = table.find(name);
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace troupe::engine::jinja
