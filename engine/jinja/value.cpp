#include "engine/jinja/value.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"

namespace troupe::engine::jinja {

void raise(std::string what) {
  throw Failure({Errc::bad_input, std::move(what)});
}

const Value* Arguments::find(std::size_t index, std::string_view name) const {
  if (index < positional.size()) return &positional[index];
  for (const auto& [key, value] : keyword)
    if (key == name) return &value;
  return nullptr;
}

std::optional<Value> Object::attribute(std::string_view) {
  return std::nullopt;
}
Value Object::call(Runtime&, Arguments&) {
  raise(cat("'", type_name(), "' object is not callable"));
}

namespace {

using Type = Value::Type;
int one_deeper(int depth, const Value& item) {
  depth = std::max(depth, item.depth() + 1);
  if (depth > max_value_depth) raise(cat("lists and dicts nested deeper than ", max_value_depth));
  return depth;
}

template <class T>
struct Holder {
  Holder(T&& held, std::size_t bytes) : value(std::move(held)), counted(bytes) {}
  T value;
  MemoryCount counted;
};
template <class T>
std::shared_ptr<const T> shared_and_counted(T&& value, std::size_t bytes) {
  auto holder = std::make_shared<const Holder<T>>(std::move(value), bytes);
  return std::shared_ptr<const T>(holder, &holder->value);
}
}  // namespace

Value::Value(std::string text) {
  const std::size_t bytes = text.capacity() + 64;
  data_ = shared_and_counted(std::move(text), bytes);
}
Value::Value(List list) {
  for (const Value& item : list.items) list.depth = one_deeper(list.depth, item);
  if (list.kind == List::Kind::generator && !list.progress)
    list.progress = std::make_shared<Progress>();
  const std::size_t bytes = list.items.capacity() * sizeof(Value) + 128;
  data_ = shared_and_counted(std::move(list), bytes);
}
Value::Value(Dict dict) {
  for (const auto& [key, item] : dict.items)
    dict.depth = one_deeper(one_deeper(dict.depth, key), item);
  const std::size_t bytes = dict.items.capacity() * 2 * sizeof(Value) + 64;
  data_ = shared_and_counted(std::move(dict), bytes);
}
Value::Value(std::shared_ptr<Object> object) : data_(std::move(object)) {
  if (depth() > max_value_depth + 1)  // a method of the deepest list
    raise(cat("values nested deeper than ", max_value_depth));
}
Value Value::markup(std::string text) {
  Value out(std::move(text));
  out.markup_ = true;
  return out;
}
int Value::depth() const {
  return is(Type::list)     ? list().depth
         : is(Type::dict)   ? dict().depth
         : is(Type::object) ? object()->depth()
                            : 0;
}

std::size_t cost_of(const Value& value, std::size_t limit) {
  std::size_t total = 1;
  if (value.is(Value::Type::string)) total += value.string().size();
  if (value.is(Value::Type::list)) {
    for (const Value& item : value.list().items)
      if (total < limit) total += cost_of(item, limit - total);
  }
  if (value.is(Value::Type::dict)) {
    for (const auto& [key, item] : value.dict().items) {
      if (total < limit) total += cost_of(key, limit - total);
      if (total < limit) total += cost_of(item, limit - total);
    }
  }
  return total;
}

Value Value::undefined(std::string why) {
  constexpr std::size_t longest = 500;  // a key may be a text of megabytes
  if (why.size() > longest) {
    why.resize(complete_utf8_prefix(std::string_view(why).substr(0, longest)));
    why += "...";
  }
  Value out;
  out.data_ = Undefined{std::make_shared<const std::string>(std::move(why))};
  return out;
}
const std::string& Value::none_reason() {
  static const std::string text = "value is undefined";
  return text;
}

Value Value::from_json(const Json& json) {
  if (json.is_bool()) return json.boolean();
  if (json.is_integer()) return json.integer();
  if (json.is_number()) return json.number();
  if (json.is_string()) return json.string();
  if (json.is_array()) {
    List out;
    for (const Json& item : json.array()) out.items.push_back(from_json(item));
    return out;
  }
  if (json.is_object()) {
    Dict out;
    for (const auto& [key, value] : json.object()) out.items.emplace_back(key, from_json(value));
    return out;
  }
  return {};
}

Value::Type Value::type() const {
  constexpr Type types[] = {Type::none, Type::boolean, Type::integer, Type::real,     Type::string,
                            Type::list, Type::dict,    Type::object,  Type::undefined};
  return types[data_.index()];
}

bool Value::truth() const {
  switch (type()) {
    case Type::undefined:
      if (strict_template()) raise(reason());
      return false;
    case Type::none:
      return false;
    case Type::boolean:
      return boolean();
    case Type::integer:
      return integer() != 0;
    case Type::real:
      return real() != 0;
    case Type::string:
      return !string().empty();
    case Type::list:
      return list().kind == List::Kind::generator || !list().items.empty();
    case Type::dict:
      return !dict().items.empty();
    case Type::object:
      return true;
  }
  return false;
}

std::string Value::type_name() const {
  switch (type()) {
    case Type::undefined:
      return "Undefined";
    case Type::none:
      return "NoneType";
    case Type::boolean:
      return "bool";
    case Type::integer:
      return "int";
    case Type::real:
      return "float";
    case Type::string:
      return "str";
    case Type::list:
      return list().kind == List::Kind::list    ? "list"
             : list().kind == List::Kind::tuple ? "tuple"
             : list().kind == List::Kind::range ? "range"
             : list().kind == List::Kind::view  ? list().view
                                                : "generator";
    case Type::dict:
      return "dict";
    case Type::object:
      return object()->type_name();
  }
  return "";
}

bool Value::same(const Value& other) const {
  if (type() != other.type()) return false;
  switch (type()) {
    case Type::list:
      return &list() == &other.list();
    case Type::dict:
      return &dict() == &other.dict();
    case Type::object:
      return object() == other.object();
    case Type::none:
      return true;
    default:
      return equal(*this, other);
  }
}

namespace {

bool same_text(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  work(a.size());
  return a == b;
}

bool equal_items(const List& a, const List& b) {
  if (&a == &b) return true;
  if (a.kind != b.kind || !a.indexable() || a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i)
    if (!equal(a.items[i], b.items[i])) return false;
  return true;
}

}  // namespace

const Value* Dict::find(const Value& key) const {
  work(8 * items.size());
  for (const auto& [name, value] : items)
    if (equal(name, key)) return &value;
  return nullptr;
}
const Value* Dict::find_text(std::string_view key) const {
  work(8 * items.size());
  for (const auto& [name, value] : items)
    if (name.is(Value::Type::string) && same_text(name.string(), key)) return &value;
  return nullptr;
}
void Dict::set(Value key, Value value) {
  work(8 * items.size());
  for (auto& [name, old] : items)
    if (equal(name, key)) {
      old = std::move(value);
      return;
    }
  items.emplace_back(std::move(key), std::move(value));
}

bool equal(const Value& a, const Value& b) {
  work(8);
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.integer() == b.integer();
    return a.real() == b.real();
  }
  if (strict_template())
    for (const Value* side : {&a, &b})
      if (side->is(Value::Type::undefined)) raise(side->reason());
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Type::undefined:
    case Type::none:
      return true;
    case Type::string:
      return same_text(a.string(), b.string());
    case Type::list:
      return equal_items(a.list(), b.list());
    case Type::dict: {
      const auto &x = a.dict(), &y = b.dict();
      if (x.items.size() != y.items.size()) return false;
      for (const auto& [key, value] : x.items) {
        const Value* other = y.find(key);
        if (!other || !equal(value, *other)) return false;
      }
      return true;
    }
    default:
      return a.object() == b.object();
  }
}

bool less(const Value& a, const Value& b) {
  work(8);
  for (const Value* side : {&a, &b})
    if (side->is(Value::Type::undefined)) raise(side->reason());
  if (a.is_number() && b.is_number())
    return a.is_integral() && b.is_integral() ? a.integer() < b.integer() : a.real() < b.real();
  if (a.is(Value::Type::string) && b.is(Value::Type::string)) {
    work(std::min(a.string().size(), b.string().size()));
    return a.string() < b.string();
  }
  if (a.is(Value::Type::list) && b.is(Value::Type::list) && a.list().kind == b.list().kind &&
      a.list().is_plain()) {
    const auto &x = a.list().items, &y = b.list().items;
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (!equal(x[i], y[i])) return less(x[i], y[i]);
    return x.size() < y.size();
  }
  raise(cat("'<' not supported between instances of '", a.type_name(), "' and '", b.type_name(),
            "'"));
}

std::size_t hash_of(const Value& value) {
  work(8);
  if (value.is_number()) return std::hash<double>()(value.real());
  const auto combined = [](std::size_t seed, const std::vector<Value>& items) {
    for (const Value& item : items)
      seed ^= hash_of(item) + 0x9E3779B97F4A7C15 + (seed << 6) + (seed >> 2);
    return seed;
  };
  switch (value.type()) {
    case Type::string:
      work(value.string().size());
      return std::hash<std::string>()(value.string());
    case Type::list:
      return value.list().indexable() ? combined(value.list().items.size(), value.list().items)
                                      : std::hash<const void*>()(&value.list());
    case Type::object:
      return std::hash<const void*>()(value.object().get());
    case Type::dict:
      return value.dict().items.size();
    default:
      return 0;
  }
}

}  // namespace troupe::engine::jinja
