#include "engine/jinja/container_methods.h"

#include <algorithm>
#include <array>

#include "engine/base/text/text.h"
#include "engine/jinja/runtime.h"

namespace troupe::engine::jinja {
namespace {

Value refused(const std::string& type, std::string_view name) {
  return Value::undefined(
      cat("access to attribute '", name, "' of '", type, "' object is unsafe."));
}

Value get(const Value& dict, const Arguments& arguments) {
  check_arguments("get", "/ key default?", arguments);
  const Value* key = &arguments.positional[0];
  require_hashable(*key);
  if (const Value* found = dict.dict().find(*key)) return *found;
  const Value* otherwise = arguments.find(1, "default");
  return otherwise ? *otherwise : Value();
}

Value listed(Runtime& runtime, const Value& dict, bool keys, bool values) {
  List out;
  out.kind = List::Kind::view;
  out.view = keys && values ? "dict_items" : keys ? "dict_keys" : "dict_values";
  runtime.reserve_items(dict.dict().items.size());
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

Value index_of(Runtime& runtime, const Value& list, const Arguments& arguments, bool count) {
  check_arguments(count ? "count" : "index", "/ value", arguments);
  runtime.account(list);
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
  constexpr std::array<std::string_view, 5> changing = {"clear", "pop", "popitem", "setdefault",
                                                        "update"};
  if (std::find(changing.begin(), changing.end(), name) != changing.end())
    return refused("dict", name);
  if (name == "get")
    return make_function("method", dict,
                         [dict](Runtime&, Arguments& arguments) { return get(dict, arguments); });
  if (name == "copy")
    return make_function("method", dict, [dict](Runtime&, Arguments&) { return dict; });
  const bool keys = name == "keys" || name == "items", values = name == "values" || name == "items";
  if (!keys && !values) return std::nullopt;
  return make_function(
      "method", dict, [dict, keys, values](Runtime& runtime, Arguments& arguments) {
        check_arguments(keys && values ? "items" : keys ? "keys" : "values", "", arguments);
        return listed(runtime, dict, keys, values);
      });
}

std::optional<Value> list_method(const Value& list, std::string_view name) {
  if (!list.list().indexable()) return std::nullopt;
  constexpr std::array<std::string_view, 7> changing = {"append", "clear",  "extend", "insert",
                                                        "pop",    "remove", "reverse"};
  const bool tuple = list.list().kind == List::Kind::tuple,
             range = list.list().kind == List::Kind::range;
  if (tuple && std::string_view(list.list().view) == "group" &&
      (name == "grouper" || name == "list"))
    return list.list().items[name == "list" ? 1 : 0];
  if (range && (name == "start" || name == "stop" || name == "step"))
    return list.list().range[name == "start" ? 0 : name == "stop" ? 1 : 2];
  if (!tuple && !range &&
      (std::find(changing.begin(), changing.end(), name) != changing.end() || name == "sort"))
    return refused("list", name);
  if (name == "copy" && !tuple && !range)
    return make_function("method", list, [list](Runtime&, Arguments&) { return list; });
  if (name != "index" && name != "count") return std::nullopt;
  return make_function("method", list,
                       [list, count = name == "count"](Runtime& runtime, Arguments& arguments) {
                         return index_of(runtime, list, arguments, count);
                       });
}

}  // namespace troupe::engine::jinja
