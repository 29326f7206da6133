// Filters of sequences.
#include <algorithm>
#include <map>

#include "engine/base/text.h"
#include "engine/tokenizer/jinja/case.h"
#include "engine/tokenizer/jinja/machine.h"

namespace troupe::engine::tokenizer::jinja {
namespace {

using Type = Value::Type;

Value generator(std::vector<Value> items) {
  List out;
  out.items = std::move(items);
  out.kind = List::Kind::generator;
  return out;
}
Value list_of(std::vector<Value> items) {
  List out;
  out.items = std::move(items);
  return out;
}

/// "a.b.0": attribute by attribute, from each item.
Value dotted(Machine& machine, const Value& item, const Value& path, const Value* otherwise = nullptr) {
  if (path.is_integral()) return machine.item(item, path);
  const std::string& text = to_text(path, "attribute");
  Value out = item;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('.', at), text.size());
    const std::string part = text.substr(at, end - at);
    const bool number = !part.empty() && part.size() < 9 && part.find_first_not_of("0123456789") == std::string::npos;
    out = machine.item(out, number ? Value(static_cast<std::int64_t>(std::stol(part))) : Value(part));
    if (out.is(Type::undefined) && otherwise) return *otherwise;
    at = end + 1;
  }
  return out;
}

bool flag(const Arguments& arguments, std::size_t index, std::string_view name) {
  const Value* given = arguments.find(index, name);
  return given && given->truth();
}

// What items are compared by: an attribute, lower case unless case_sensitive.
Value sort_key(Machine& machine, const Value& item, const Value* attribute, bool case_sensitive) {
  Value key = attribute && !attribute->is(Type::none) ? dotted(machine, item, *attribute) : item;
  return key.is(Type::string) && !case_sensitive ? Value(lower(key.string())) : key;
}

std::vector<Value> sort_by_key(Machine& machine, std::vector<std::pair<Value, Value>> keyed, bool reverse) {
  for (const auto& [key, item] : keyed) machine.weigh(key);
  machine.charge(keyed.size() * 8);
  std::stable_sort(keyed.begin(), keyed.end(),
                   [&](const auto& a, const auto& b) { return reverse ? less(b.first, a.first) : less(a.first, b.first); });
  std::vector<Value> out;
  for (auto& [key, item] : keyed) out.push_back(std::move(item));
  return out;
}

std::vector<Value> sorted(Machine& machine, std::vector<Value> items, const Value* attribute, bool case_sensitive, bool reverse) {
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : items) {
    Value key = sort_key(machine, item, attribute, case_sensitive);
    keyed.emplace_back(std::move(key), std::move(item));
  }
  return sort_by_key(machine, std::move(keyed), reverse);
}

// By one attribute or several ("a,b"); keys are compared as Python compares lists of them.
Value sort(Machine& machine, const Value& value, Arguments& arguments) {
  const Value* attribute = arguments.find(2, "attribute");
  const bool sensitive = flag(arguments, 1, "case_sensitive"), reverse = flag(arguments, 0, "reverse");
  std::vector<Value> paths;
  if (attribute && attribute->is(Type::string)) {
    const std::string& text = attribute->string();
    for (std::size_t at = 0; at <= text.size(); at = std::min(text.find(',', at), text.size()) + 1)
      paths.emplace_back(text.substr(at, std::min(text.find(',', at), text.size()) - at));
  } else if (attribute && !attribute->is(Type::none)) {
    paths.push_back(*attribute);
  }
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : machine.items_of(value)) {
    List key;
    for (const Value& path : paths) key.items.push_back(sort_key(machine, item, &path, sensitive));
    if (paths.empty()) key.items.push_back(sort_key(machine, item, nullptr, sensitive));
    keyed.emplace_back(std::move(key), std::move(item));
  }
  return list_of(sort_by_key(machine, std::move(keyed), reverse));
}

Value dict_sort(Machine& machine, const Value& value, Arguments& arguments) {
  require_defined(value);
  if (!value.is(Type::dict)) raise("dictsort needs a mapping");
  const Value* by = arguments.find(1, "by");
  const Value position = by && by->is(Type::string) && by->string() == "value" ? 1 : 0;
  Arguments none;
  const Value items = machine.call(*dict_method(value, "items"), none);
  return list_of(sorted(machine, machine.items_of(items), &position, flag(arguments, 0, "case_sensitive"), flag(arguments, 2, "reverse")));
}

Value extreme(Machine& machine, const Value& value, Arguments& arguments, bool largest) {
  const auto items = machine.items_of(value);
  if (items.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const Value* attribute = arguments.find(1, "attribute");
  const bool sensitive = flag(arguments, 0, "case_sensitive");
  const Value* best = &items[0];
  Value best_key = sort_key(machine, items[0], attribute, sensitive);
  for (const Value& item : items) {
    Value key = sort_key(machine, item, attribute, sensitive);
    machine.weigh(key);
    if (!(largest ? less(best_key, key) : less(key, best_key))) continue;
    best = &item;
    best_key = std::move(key);
  }
  return *best;
}

Value unique(Machine& machine, const Value& value, Arguments& arguments) {
  const bool sensitive = flag(arguments, 0, "case_sensitive");
  std::vector<Value> out, keys;
  for (Value& item : machine.items_of(value)) {
    Value key = sort_key(machine, item, arguments.find(1, "attribute"), sensitive);
    machine.charge(keys.size() / 4);
    if (std::any_of(keys.begin(), keys.end(), [&](const Value& known) { return equal(known, key); })) continue;
    keys.push_back(std::move(key));
    out.push_back(std::move(item));
  }
  return generator(std::move(out));
}

Value group_by(Machine& machine, const Value& value, Arguments& arguments) {
  const Value* attribute = arguments.find(0, "attribute");
  if (!attribute) raise("groupby needs an attribute");
  const Value* otherwise = arguments.find(1, "default");
  std::vector<std::pair<Value, List>> groups;
  for (Value& item : sorted(machine, machine.items_of(value), attribute, false, false)) {
    Value key = dotted(machine, item, *attribute, otherwise);
    if (groups.empty() || !equal(groups.back().first, key)) groups.emplace_back(key, List{});
    groups.back().second.items.push_back(std::move(item));
  }
  std::vector<Value> out;
  for (auto& [key, members] : groups) {
    List pair;
    pair.kind = List::Kind::tuple;
    pair.items = {key, Value(std::move(members))};
    out.emplace_back(std::move(pair));
  }
  return list_of(std::move(out));
}

Value join(Machine& machine, const Value& value, Arguments& arguments) {
  const Value *separator = arguments.find(0, "d"), *attribute = arguments.find(1, "attribute");
  const std::string between = separator ? machine.text(*separator) : "";
  std::string out;
  bool first = true;
  for (const Value& item : machine.items_of(value)) {
    const std::string part = machine.text(attribute && !attribute->is(Type::none) ? dotted(machine, item, *attribute) : item);
    if (out.size() + between.size() + part.size() > (1u << 20)) machine.reserve(out.size() + between.size() + part.size());
    machine.reserve(between.size() + part.size());
    if (!std::exchange(first, false)) out += between;
    out += part;
  }
  return out;
}

Value sum(Machine& machine, const Value& value, Arguments& arguments) {
  const Value *attribute = arguments.find(0, "attribute"), *start = arguments.find(1, "start");
  Value total = start ? *start : Value(0);
  for (const Value& item : machine.items_of(value))
    total = binary(machine, "+", total, attribute && !attribute->is(Type::none) ? dotted(machine, item, *attribute) : item);
  return total;
}

Value map_filter(Machine& machine, const Value& value, Arguments& arguments) {
  std::vector<Value> out;
  const Value *attribute = nullptr, *otherwise = nullptr;
  for (const auto& [name, given] : arguments.keyword) {
    if (name == "attribute") attribute = &given;
    if (name == "default") otherwise = &given;
  }
  if (!attribute && arguments.positional.empty()) raise("map requires a filter argument");
  Arguments rest;
  if (!attribute) rest.positional.assign(arguments.positional.begin() + 1, arguments.positional.end()), rest.keyword = arguments.keyword;
  if (!value.truth()) return generator({});
  for (const Value& item : machine.items_of(value))
    out.push_back(attribute ? dotted(machine, item, *attribute, otherwise)
                            : machine.filter(to_text(arguments.positional[0], "a filter's name"), item, rest));
  return generator(std::move(out));
}

// select, reject, selectattr, rejectattr: keep where the test holds, or does not.
Value pick(Machine& machine, const Value& value, const Arguments& arguments, bool by_attribute, bool keep) {
  const std::size_t first = by_attribute ? 1 : 0;
  if (by_attribute && arguments.positional.empty()) raise("an attribute's name is missing");
  const bool tested = arguments.positional.size() > first;
  Arguments rest;
  if (tested) rest.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(first) + 1, arguments.positional.end());
  rest.keyword = arguments.keyword;
  std::vector<Value> out;
  if (!value.truth()) return generator({});
  for (Value& item : machine.items_of(value)) {
    const Value subject = by_attribute ? dotted(machine, item, arguments.positional[0]) : item;
    const bool holds = tested ? machine.test(to_text(arguments.positional[first], "a test's name"), subject, rest) : subject.truth();
    if (holds == keep) out.push_back(std::move(item));
  }
  return generator(std::move(out));
}

Value reverse(Machine& machine, const Value& value, Arguments&) {
  if (value.is(Type::string)) return slice(machine, value, {}, {}, -1);
  auto items = machine.items_of(value);
  std::reverse(items.begin(), items.end());
  return generator(std::move(items));
}

Value end_of(Machine& machine, const Value& value, bool last) {
  const auto items = machine.items_of(value);
  if (items.empty()) return Value::undefined(last ? "No last item, sequence was empty." : "No first item, sequence was empty.");
  return last ? items.back() : items.front();
}

Value batch(Machine& machine, const Value& value, Arguments& arguments) {
  const Value *size = arguments.find(0, "linecount"), *fill = arguments.find(1, "fill_with");
  const std::int64_t count = size ? to_integer(*size, "linecount") : 0;
  if (count < 1) raise("batch needs a positive size");
  std::vector<Value> out, line;
  for (Value& item : machine.items_of(value)) {
    line.push_back(std::move(item));
    if (static_cast<std::int64_t>(line.size()) == count) out.push_back(list_of(std::exchange(line, {})));
  }
  if (!line.empty()) {
    machine.reserve_items(static_cast<std::size_t>(count));
    while (fill && !fill->is(Type::none) && static_cast<std::int64_t>(line.size()) < count) line.push_back(*fill);
    out.push_back(list_of(std::move(line)));
  }
  return generator(std::move(out));
}

// In `count` parts of nearly equal length, the longer ones first.
Value slice_filter(Machine& machine, const Value& value, Arguments& arguments) {
  const Value *parts = arguments.find(0, "slices"), *fill = arguments.find(1, "fill_with");
  const auto items = machine.items_of(value);
  const std::int64_t count = parts ? to_integer(*parts, "slices") : 0;
  if (count < 1) raise("slice needs a positive number of slices");
  machine.reserve_items(static_cast<std::size_t>(count));
  const std::size_t base = items.size() / static_cast<std::size_t>(count), longer = items.size() % static_cast<std::size_t>(count);
  std::vector<Value> out;
  std::size_t at = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    std::vector<Value> part;
    for (std::size_t j = 0; j < base + (i < longer); ++j) part.push_back(items[at++]);
    if (fill && !fill->is(Type::none) && longer > 0 && i >= longer) part.push_back(*fill);
    out.push_back(list_of(std::move(part)));
  }
  return generator(std::move(out));
}

const std::map<std::string_view, FilterBody>& table() {
  using M = Machine;
  using V = Value;
  using A = Arguments;
  static const std::map<std::string_view, FilterBody> filters = {
      {"sort", sort},
      {"dictsort", dict_sort},
      {"min", [](M& m, const V& v, A& a) { return extreme(m, v, a, false); }},
      {"max", [](M& m, const V& v, A& a) { return extreme(m, v, a, true); }},
      {"unique", unique},
      {"groupby", group_by},
      {"join", join},
      {"sum", sum},
      {"map", map_filter},
      {"select", [](M& m, const V& v, A& a) { return pick(m, v, a, false, true); }},
      {"reject", [](M& m, const V& v, A& a) { return pick(m, v, a, false, false); }},
      {"selectattr", [](M& m, const V& v, A& a) { return pick(m, v, a, true, true); }},
      {"rejectattr", [](M& m, const V& v, A& a) { return pick(m, v, a, true, false); }},
      {"reverse", reverse},
      {"first", [](M& m, const V& v, A&) { return end_of(m, v, false); }},
      {"last", [](M& m, const V& v, A&) { return end_of(m, v, true); }},
      {"list", [](M& m, const V& v, A&) { return list_of(m.items_of(v)); }},
      {"batch", batch},
      {"slice", slice_filter},
  };
  return filters;
}

}  // namespace

FilterBody find_list_filter(std::string_view name) {
  const auto found = table().find(name);
  return found == table().end() ? nullptr : found->second;
}

}  // namespace troupe::engine::tokenizer::jinja
