#include "engine/jinja/filters.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "engine/jinja/case.h"
#include "engine/jinja/container_methods.h"
#include "engine/jinja/operators.h"
#include "engine/jinja/runtime.h"
#include "engine/jinja/sequences.h"

namespace troupe::engine::jinja {

namespace {

using Type = Value::Type;

bool given(const Value* argument) {
  return argument && !argument->is(Type::none);
}

bool flag(const Arguments& arguments, std::size_t index, std::string_view name) {
  const Value* given = arguments.find(index, name);
  return given && given->truth();
}

// The sort key of an item: an attribute, in lower case unless case_sensitive.
Value sort_key(Runtime& runtime, const Value& item, const Value* attribute, bool case_sensitive,
               const Value* otherwise = nullptr) {
  Value key = given(attribute) ? dotted(runtime, item, *attribute, otherwise) : item;
  runtime.charge_text(key);
  return key.is(Type::string) && !case_sensitive ? Value(lower(key.string())) : key;
}

std::vector<Value> sort_by_key(Runtime& runtime, std::vector<std::pair<Value, Value>> keyed,
                               bool reverse) {
  runtime.charge(keyed.size());
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return reverse ? less(b.first, a.first) : less(a.first, b.first);
  });
  std::vector<Value> out;
  for (auto& [key, item] : keyed) out.push_back(std::move(item));
  return out;
}

std::vector<Value> sorted(Runtime& runtime, std::vector<Value> items, const Value* attribute,
                          bool case_sensitive, bool reverse, const Value* otherwise = nullptr) {
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : items) {
    Value key = sort_key(runtime, item, attribute, case_sensitive, otherwise);
    keyed.emplace_back(std::move(key), std::move(item));
  }
  return sort_by_key(runtime, std::move(keyed), reverse);
}

// Sorts by one attribute or several ("a,b"), compared as Python compares lists of them.
Value sort(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Value* attribute = arguments.find(2, "attribute");
  const bool sensitive = flag(arguments, 1, "case_sensitive"),
             reverse = flag(arguments, 0, "reverse");
  std::vector<Value> paths;
  if (attribute && attribute->is(Type::string)) {
    for (const auto part : split(attribute->string(), ',')) paths.emplace_back(std::string(part));
  } else if (given(attribute)) {
    paths.push_back(*attribute);
  }
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : runtime.items_of(value)) {
    List key;
    for (const Value& path : paths) key.items.push_back(sort_key(runtime, item, &path, sensitive));
    if (paths.empty()) key.items.push_back(sort_key(runtime, item, nullptr, sensitive));
    keyed.emplace_back(std::move(key), std::move(item));
  }
  return list_of(sort_by_key(runtime, std::move(keyed), reverse));
}

Value dict_sort(Runtime& runtime, const Value& value, Arguments& arguments) {
  require_defined(value);
  if (!value.is(Type::dict)) raise("dictsort needs a mapping");
  const Value* by = arguments.find(1, "by");
  const std::string what = by ? to_text(*by, "by") : "key";
  if (what != "key" && what != "value") raise("You can only sort by either \"key\" or \"value\"");
  const Value position = what == "value" ? 1 : 0;
  Arguments none;
  const Value items = runtime.call(*dict_method(value, "items"), none);
  return list_of(sorted(runtime, runtime.items_of(items), &position,
                        flag(arguments, 0, "case_sensitive"), flag(arguments, 2, "reverse")));
}

Value extreme(Runtime& runtime, const Value& value, Arguments& arguments, bool largest) {
  const auto items = runtime.items_of(value);
  if (items.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const Value* attribute = arguments.find(1, "attribute");
  const bool sensitive = flag(arguments, 0, "case_sensitive");
  const Value* best = &items[0];
  Value best_key = sort_key(runtime, items[0], attribute, sensitive);
  for (std::size_t i = 1; i < items.size(); ++i) {
    Value key = sort_key(runtime, items[i], attribute, sensitive);
    if (!(largest ? less(best_key, key) : less(key, best_key))) continue;
    best = &items[i];
    best_key = std::move(key);
  }
  return *best;
}

struct Hashed {
  std::size_t operator()(const Value& value) const { return hash_of(value); }
};
struct Equal {
  bool operator()(const Value& a, const Value& b) const { return equal(a, b); }
};

Value unique(Runtime& runtime, const Value& value, Arguments& arguments) {
  const bool sensitive = flag(arguments, 0, "case_sensitive");
  return generator([&](std::vector<Value>& out) {
    std::unordered_set<Value, Hashed, Equal> known;
    for (Value& item : runtime.items_of(value)) {
      Value key = sort_key(runtime, item, arguments.find(1, "attribute"), sensitive);
      require_hashable(key);
      if (known.insert(std::move(key)).second) out.push_back(std::move(item));
    }
  });
}

// Groups have the spelling of their first item.
Value group_by(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Value *attribute = arguments.find(0, "attribute"),
              *default_given = arguments.find(1, "default");
  const Value* otherwise = given(default_given) ? default_given : nullptr;
  const bool sensitive = flag(arguments, 2, "case_sensitive");
  std::vector<std::pair<Value, List>> groups;
  for (Value& item :
       sorted(runtime, runtime.items_of(value), attribute, sensitive, false, otherwise)) {
    Value key = sort_key(runtime, item, attribute, sensitive, otherwise);
    if (groups.empty() || !equal(groups.back().first, key))
      groups.emplace_back(std::move(key), List{});
    groups.back().second.items.push_back(std::move(item));
  }
  std::vector<Value> out;
  for (auto& [key, members] : groups) {
    List pair;
    pair.kind = List::Kind::tuple;
    pair.view = "group";
    Value name = given(attribute) ? dotted(runtime, members.items[0], *attribute, otherwise)
                                  : members.items[0];
    pair.items = {std::move(name), Value(std::move(members))};
    out.emplace_back(std::move(pair));
  }
  return list_of(std::move(out));
}

Value join_filter(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Value *separator = arguments.find(0, "d"), *attribute = arguments.find(1, "attribute");
  const std::string between = separator ? runtime.text(*separator) : "";
  std::string out;
  bool first = true;
  for (const Value& item : runtime.items_of(value)) {
    const std::string part =
        runtime.text(given(attribute) ? dotted(runtime, item, *attribute) : item);
    runtime.grow(out.size(), between.size() + part.size());
    if (!std::exchange(first, false)) out += between;
    out += part;
  }
  return out;
}

Value sum(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Value *attribute = arguments.find(0, "attribute"), *start = arguments.find(1, "start");
  Value total = start ? *start : Value(0);
  if (total.is(Type::string)) raise("sum() can't sum strings");
  for (const Value& item : runtime.items_of(value))
    total =
        binary(runtime, "+", total, given(attribute) ? dotted(runtime, item, *attribute) : item);
  return total;
}

Value reverse(Runtime& runtime, const Value& value, Arguments&) {
  if (value.is(Type::string)) return slice(runtime, value, {}, {}, -1);
  auto items = runtime.items_of(value);
  std::reverse(items.begin(), items.end());
  if (value.is(Type::list) && value.list().kind == List::Kind::generator)
    return list_of(std::move(items));
  return generator([&](std::vector<Value>& out) { out = std::move(items); });
}

Value first(Runtime& runtime, const Value& value, Arguments&) {
  const auto items = runtime.items_of(value, 1);
  return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
}
Value last(Runtime& runtime, const Value& value, Arguments&) {
  if (value.is(Type::list) && value.list().kind == List::Kind::generator)
    raise("'generator' object is not reversible");
  const auto items = runtime.items_of(value);
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Value batch(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Value* fill = arguments.find(1, "fill_with");
  const std::int64_t count = to_integer(*arguments.find(0, "linecount"), "linecount");
  if (count < 1) raise("batch needs a positive size");
  return generator([&](std::vector<Value>& out) {
    std::vector<Value> line;
    for (Value& item : runtime.items_of(value)) {
      line.push_back(std::move(item));
      if (static_cast<std::int64_t>(line.size()) == count)
        out.push_back(list_of(std::exchange(line, {})));
    }
    if (line.empty()) return;
    if (given(fill)) runtime.reserve_items(static_cast<std::size_t>(count));
    while (given(fill) && static_cast<std::int64_t>(line.size()) < count) line.push_back(*fill);
    out.push_back(list_of(std::move(line)));
  });
}

// Splits into `count` parts of nearly equal length, the longer ones first.
Value slice_filter(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Value* fill = arguments.find(1, "fill_with");
  const std::int64_t count = to_integer(*arguments.find(0, "slices"), "slices");
  return generator([&](std::vector<Value>& out) {
    const auto items = runtime.items_of(value);
    if (count < 1) raise("slice needs a positive number of slices");
    runtime.reserve_items(static_cast<std::size_t>(count), 256);
    const std::size_t base = items.size() / static_cast<std::size_t>(count),
                      longer = items.size() % static_cast<std::size_t>(count);
    std::size_t at = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      std::vector<Value> part;
      for (std::size_t j = 0; j < base + (i < longer); ++j) part.push_back(items[at++]);
      if (given(fill) && i >= longer) part.push_back(*fill);
      out.push_back(list_of(std::move(part)));
    }
  });
}

}  // namespace

const FilterTable& list_filters() {
  using M = Runtime;
  using V = Value;
  using A = Arguments;
  static const FilterTable filters = {
      {"sort", {sort, "reverse? case_sensitive? attribute?"}},
      {"dictsort", {dict_sort, "case_sensitive? by? reverse?"}},
      {"min",
       {[](M& m, const V& v, A& a) { return extreme(m, v, a, false); },
        "case_sensitive? attribute?"}},
      {"max",
       {[](M& m, const V& v, A& a) { return extreme(m, v, a, true); },
        "case_sensitive? attribute?"}},
      {"unique", {unique, "case_sensitive? attribute?"}},
      {"groupby", {group_by, "attribute default? case_sensitive?"}},
      {"join", {join_filter, "d? attribute?"}},
      {"sum", {sum, "attribute? start?"}},
      {"reverse", {reverse, ""}},
      {"first", {first, ""}},
      {"last", {last, ""}},
      {"list", {[](M& m, const V& v, A&) { return list_of(m.items_of(v)); }, ""}},
      {"batch", {batch, "linecount fill_with?"}},
      {"slice", {slice_filter, "slices fill_with?"}},
  };
  return filters;
}

namespace {

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

const FilterTable& choice_filters() {
  using M = Runtime;
  using V = Value;
  using A = Arguments;
  static const FilterTable table = {
      {"map", {map_filter, "*"}},
      {"select", {[](M& m, const V& v, A& a) { return pick(m, v, a, false, true); }, "*"}},
      {"reject", {[](M& m, const V& v, A& a) { return pick(m, v, a, false, false); }, "*"}},
      {"selectattr", {[](M& m, const V& v, A& a) { return pick(m, v, a, true, true); }, "*"}},
      {"rejectattr", {[](M& m, const V& v, A& a) { return pick(m, v, a, true, false); }, "*"}},
  };
  return table;
}

}  // namespace troupe::engine::jinja
