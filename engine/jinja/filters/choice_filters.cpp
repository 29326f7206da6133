#include "engine/jinja/filters/choice_filters.h"

#include <map>

#include "engine/base/text.h"
#include "engine/jinja/filters/sequences.h"

namespace troupe::engine::jinja {

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
void map_attribute(Runtime& runtime, const Value& value, const Arguments& arguments,
                   std::vector<Value>& out) {
  const Value *attribute = nullptr, *otherwise = nullptr;
  for (const auto& [name, given] : arguments.keyword) {
    if (name != "attribute" && name != "default")
      raise(cat("Unexpected keyword argument '", name, "'"));
    (name == "attribute" ? attribute : otherwise) = &given;
  }
  if (!attribute) raise("map requires a filter argument");
  if (otherwise && otherwise->is(Type::none)) otherwise = nullptr;
  for (const Value& item : runtime.items_of(value))
    out.push_back(dotted(runtime, item, *attribute, otherwise));
}

Value map_filter(Runtime& runtime, const Value& value, Arguments& arguments) {
  return generator([&](std::vector<Value>& out) {
    if (!value.truth()) return;
    if (arguments.positional.empty()) return map_attribute(runtime, value, arguments, out);
    const std::string& name = to_text(arguments.positional[0], "a filter's name");
    const Arguments rest = behind(arguments, 1);
    for (const Value& item : runtime.items_of(value)) {
      Arguments own = rest;
      out.push_back(runtime.filter(name, item, own));
    }
  });
}

// Keeps the items for which the test is true, or those for which it is false.
Value pick(Runtime& runtime, const Value& value, const Arguments& arguments, bool by_attribute,
           bool keep) {
  return generator([&](std::vector<Value>& out) {
    if (!value.truth()) return;
    const std::size_t first = by_attribute ? 1 : 0;
    const auto& given = arguments.positional;
    if (given.size() < first) raise("Missing parameter for attribute name");
    const bool tested = given.size() > first;
    const Arguments rest = behind(arguments, first + 1);
    for (Value& item : runtime.items_of(value)) {
      const Value subject = by_attribute ? dotted(runtime, item, given[0]) : item;
      Arguments own = rest;
      const bool holds = tested ? runtime.test(to_text(given[first], "a test's name"), subject, own)
                                : subject.truth();
      if (holds == keep) out.push_back(std::move(item));
    }
  });
}

}  // namespace

const Filter* find_choice_filter(std::string_view name) {
  using M = Runtime;
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
