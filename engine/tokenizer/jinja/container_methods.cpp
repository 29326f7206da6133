// Methods of dicts and lists. Those that would change them are refused, as in transformers' immutable sandbox.
#include <algorithm>
#include <array>

#include "engine/base/text.h"
#include "engine/tokenizer/jinja/machine.h"

namespace troupe::engine::tokenizer::jinja {
namespace {

Value refused(const std::string& type, std::string_view name) {
  return make_function(
      "method",
      [what = cat("access to attribute '", name, "' of '", type, "' object is unsafe.")](Machine&, Arguments&) -> Value { raise(what); });
}

Value get(Machine& machine, const Value& dict, const Arguments& arguments) {
  const Value* key = arguments.find(0, "key");
  if (!key) raise("get expected at least 1 argument, got 0");
  machine.charge(dict.dict().items.size() / 16);
  if (const Value* found = dict.dict().find(*key)) return *found;
  const Value* otherwise = arguments.find(1, "default");
  return otherwise ? *otherwise : Value();
}

Value listed(Machine& machine, const Value& dict, bool keys, bool values) {
  List out;
  out.kind = List::Kind::view;
  out.view = keys && values ? "dict_items" : keys ? "dict_keys" : "dict_values";
  machine.reserve_items(dict.dict().items.size());
  for (const auto& [key, value] : dict.dict().items) {
    if (!keys || !values) {
      out.items.push_back(keys ? key : value);
      continue;
    }
    List pair;
    pair.kind = List::Kind::tuple;
    pair.items = {key, value};
    out.items.emplace_back(std::move(pair));
  }
  return out;
}

Value index_of(Machine& machine, const Value& list, const Arguments& arguments, bool count) {
  if (arguments.positional.empty()) raise("one argument is expected");
  machine.weigh(list);
  std::size_t found = 0;
  const auto& items = list.list().items;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!equal(items[i], arguments.positional[0])) continue;
    if (!count) return i;
    ++found;
  }
  if (!count) raise("the value is not in the list");
  return found;
}

}  // namespace

std::optional<Value> dict_method(const Value& dict, std::string_view name) {
  constexpr std::array<std::string_view, 5> changing = {"clear", "pop", "popitem", "setdefault", "update"};
  if (std::find(changing.begin(), changing.end(), name) != changing.end()) return refused("dict", name);
  if (name == "get")
    return make_function("method", [dict](Machine& machine, Arguments& arguments) { return get(machine, dict, arguments); });
  if (name == "copy") return make_function("method", [dict](Machine&, Arguments&) { return dict; });
  const bool keys = name == "keys" || name == "items", values = name == "values" || name == "items";
  if (!keys && !values) return std::nullopt;
  return make_function("method", [dict, keys, values](Machine& machine, Arguments&) { return listed(machine, dict, keys, values); });
}

std::optional<Value> list_method(const Value& list, std::string_view name) {
  if (!list.list().indexable()) return std::nullopt;
  constexpr std::array<std::string_view, 7> changing = {"append", "clear", "extend", "insert", "pop", "remove", "reverse"};
  const bool tuple = list.list().kind == List::Kind::tuple;
  if (!tuple && (std::find(changing.begin(), changing.end(), name) != changing.end() || name == "sort")) return refused("list", name);
  if (name == "copy" && !tuple) return make_function("method", [list](Machine&, Arguments&) { return list; });
  if (name != "index" && name != "count") return std::nullopt;
  return make_function("method", [list, count = name == "count"](Machine& machine, Arguments& arguments) {
    return index_of(machine, list, arguments, count);
  });
}

}  // namespace troupe::engine::tokenizer::jinja
