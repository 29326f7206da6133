#include "engine/jinja/runtime.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/jinja/container_methods.h"
#include "engine/jinja/filters.h"
#include "engine/jinja/operators.h"
#include "engine/jinja/repr.h"
#include "engine/jinja/string_methods.h"
#include "engine/jinja/tests.h"

namespace troupe::engine::jinja {

namespace {

struct Parameters {
  std::vector<std::string_view> names;
  std::size_t needed = 0;
  bool by_position_only = false;
};

Parameters parse(std::string_view text) {
  Parameters out;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    std::string_view name = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (name == "/") {
      out.by_position_only = true;
      continue;
    }
    if (name.ends_with('?'))
      name.remove_suffix(1);
    else
      ++out.needed;
    out.names.push_back(name);
  }
  return out;
}

}  // namespace

void check_arguments(std::string_view callee, std::string_view parameters,
                     const Arguments& arguments) {
  if (parameters == "*") return;
  const Parameters known = parse(parameters);
  const std::size_t given = arguments.positional.size();
  if (given > known.names.size())
    raise(
        cat(callee, "() takes at most ", known.names.size(), " arguments, ", given, " were given"));
  for (const auto& [name, value] : arguments.keyword) {
    const auto found = std::find(known.names.begin(), known.names.end(), name);
    if (known.by_position_only || found == known.names.end())
      raise(cat(callee, "() takes no keyword argument '", name, "'"));
    if (static_cast<std::size_t>(found - known.names.begin()) < given)
      raise(cat(callee, "() got two values for '", name, "'"));
  }
  for (std::size_t i = given; i < known.needed; ++i)
    if (!arguments.find(i, known.names[i]))
      raise(cat(callee, "() is missing its argument '", known.names[i], "'"));
}

void require_hashable(const Value& key) {
  work(8);
  if (key.is(Value::Type::dict) ||
      (key.is(Value::Type::list) && key.list().kind == List::Kind::list))
    raise(cat("unhashable type: '", key.type_name(), "'"));
  if (!key.is(Value::Type::list) || key.list().kind != List::Kind::tuple) return;
  for (const Value& item : key.list().items) require_hashable(item);
}

std::string Namespace::text() const {
  if (std::exchange(printing_, true)) return "<Namespace {...}>";
  std::string out = cat("<Namespace ", to_string(values), ">");
  printing_ = false;
  return out;
}
std::optional<Value> Namespace::attribute(std::string_view name) {
  const Value* found = values.find_text(name);
  return found ? std::optional(*found) : std::nullopt;
}

Value make_function(std::string name, Function::Body body) {
  return make_function(std::move(name), Value(), std::move(body));
}
Value make_function(std::string name, const Value& held, Function::Body body) {
  return Value(std::shared_ptr<Object>(
      std::make_shared<Function>(std::move(name), std::move(body), held.depth() + 1)));
}

void require_defined(const Value& value) {
  if (value.is(Value::Type::undefined)) raise(value.reason());
}
std::int64_t to_integer(const Value& value, std::string_view what) {
  require_defined(value);
  if (!value.is_integral()) raise(cat(what, " must be an integer, not ", value.type_name()));
  return value.integer();
}
const std::string& to_text(const Value& value, std::string_view what) {
  require_defined(value);
  if (!value.is(Value::Type::string))
    raise(cat(what, " must be a string, not ", value.type_name()));
  return value.string();
}

Runtime::DepthGuard::DepthGuard(Runtime& runtime) : runtime_(runtime) {
  if (++runtime_.depth_ > runtime_.limits().depth) {
    --runtime_.depth_;
    raise("the template recurses too deeply");
  }
}

Runtime::~Runtime() {
  for (const auto& space : namespaces_) space->values.items.clear();
}

void Runtime::reserve(std::size_t bytes) {
  require_text(bytes);
  charge(bytes / 32);
}
void Runtime::grow(std::size_t size, std::size_t more) {
  require_text(size + more);
  meter_.work(2 * more + 16);
}
void Runtime::reserve_items(std::size_t count, std::size_t bytes) {
  if (count > limits().items)
    raise(cat("a list of ", count, " items; at most ", limits().items, " are allowed"));
  meter_.require_memory(count * bytes);
  charge(count);
}
void Runtime::charge_text(const Value& value) {
  if (value.is(Value::Type::string)) meter_.work(4 * value.string().size());
}
void Runtime::account(const Value& value) {
  if (!value.is(Value::Type::list) && !value.is(Value::Type::dict)) return;
  const std::size_t total = cost_of(value, limits().bytes + 1);
  reserve(total);
  charge(total / 16);
}
std::string Runtime::text(const Value& value) {
  account(value);
  std::string out = to_string(value);
  reserve(out.size());
  return out;
}

Value Runtime::call(const Value& callee, Arguments& arguments) {
  charge(1);
  require_defined(callee);
  if (!callee.is(Value::Type::object))
    raise(cat("'", callee.type_name(), "' object is not callable"));
  const std::shared_ptr<Object> object = callee.object();
  return object->call(*this, arguments);
}

Value Runtime::filter(const std::string& name, const Value& value, Arguments& arguments) {
  charge(1);
  const Filter* found = find_filter(name);
  if (!found) raise(cat("no filter named ", quote(name)));
  check_arguments(name, found->parameters, arguments);
  charge_text(value);
  return found->body(*this, value, arguments);
}

bool Runtime::test(const std::string& name, const Value& value, Arguments& arguments) {
  charge(1);
  const Test* found = find_test(name);
  if (!found) raise(cat("no test named ", quote(name)));
  check_arguments(name, found->parameters, arguments);
  charge_text(value);
  return found->body(*this, value, arguments);
}

Value Runtime::make_namespace(Dict values) {
  charge(50);
  auto out = std::make_shared<Namespace>();
  out->values = std::move(values);
  namespaces_.push_back(out);
  return Value(std::shared_ptr<Object>(out));
}

namespace {

std::optional<Value> own_attribute(const Value& object, const std::string& name) {
  switch (object.type()) {
    case Value::Type::string:
      return string_method(object, name);
    case Value::Type::dict:
      return dict_method(object, name);
    case Value::Type::list:
      return list_method(object, name);
    case Value::Type::object:
      return object.object()->attribute(name);
    default:
      return std::nullopt;
  }
}

Value missing_member(const Value& object, const std::string& key_repr, bool attribute) {
  if (object.is(Value::Type::none))
    return Value::undefined(cat("'None' has no attribute ", key_repr));
  return Value::undefined(cat("'", object.type_name(), " object' has no ",
                              attribute ? "attribute " : "element ", key_repr));
}

}  // namespace

// environment.getattr: Python's attribute first, then the item.
Value Runtime::attribute(const Value& object, const std::string& name) {
  require_defined(object);
  if (name.starts_with("__") || (name.starts_with('_') && !object.is(Value::Type::dict)))
    return Value::undefined(
        cat("access to attribute '", name, "' of '", object.type_name(), "' object is unsafe."));
  if (auto found = own_attribute(object, name)) return *found;
  if (object.is(Value::Type::dict))
    if (const Value* found = object.dict().find_text(name)) return *found;
  return missing_member(object, cat("'", name, "'"), true);
}

// environment.getitem: the item first, then, for a string, Python's attribute.
Value Runtime::item(const Value& object, const Value& key) {
  require_defined(object);
  if (object.is(Value::Type::dict)) {
    const Value* found = key.is(Value::Type::string) ? object.dict().find_text(key.string())
                                                     : object.dict().find(key);
    if (found) return *found;
  }
  const bool list = object.is(Value::Type::list) && object.list().indexable();
  if ((list || object.is(Value::Type::string)) && key.is_integral()) {
    charge_text(object);
    const auto size = static_cast<std::int64_t>(list ? object.list().items.size()
                                                     : count_code_points(object.string()));
    const std::int64_t index = key.integer() < 0 ? key.integer() + size : key.integer();
    if (index < 0 || index >= size)
      return missing_member(object, std::to_string(key.integer()), false);
    if (list) return object.list().items[static_cast<std::size_t>(index)];
    const std::string& text = object.string();
    std::size_t at = 0;
    for (std::int64_t i = 0; i < index; ++i) at += utf8_length(text[at]);
    std::string character = text.substr(at, utf8_length(text[at]));
    return object.is_markup() ? Value::markup(std::move(character)) : Value(std::move(character));
  }
  if (key.is(Value::Type::string) && !key.string().starts_with('_'))
    if (auto found = own_attribute(object, key.string())) return *found;
  return missing_member(object, cost_of(key, 1000) < 1000 ? to_repr(key) : key.type_name(),
                        key.is(Value::Type::string));
}

namespace {

// The remaining items of a generator, at most `max_items`; each item is returned once.
std::vector<Value> take_items(const List& generator, std::size_t max_items) {
  Progress& progress = *generator.progress;
  const auto begin = generator.items.begin() + static_cast<std::ptrdiff_t>(progress.taken);
  const std::size_t count = std::min(max_items, generator.items.size() - progress.taken);
  if (count < max_items && !progress.failure.empty()) raise(progress.failure);
  progress.taken += count;
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

std::vector<Value> Runtime::items_of(const Value& value, std::size_t max_items) {
  std::vector<Value> out;
  switch (value.type()) {
    case Value::Type::undefined:
      if (strict_template()) raise(value.reason());
      break;
    case Value::Type::list:
      reserve_items(value.list().items.size());
      if (value.list().kind == List::Kind::generator) return take_items(value.list(), max_items);
      return value.list().items;
    case Value::Type::dict:
      reserve_items(value.dict().items.size());
      for (const auto& [key, item] : value.dict().items) out.push_back(key);
      break;
    case Value::Type::string: {
      const std::string& text = value.string();
      const std::size_t count = count_code_points(text);
      reserve_items(count, 160);
      out.reserve(count);
      for (std::size_t at = 0; at < text.size(); at += utf8_length(text[at]))
        out.emplace_back(text.substr(at, utf8_length(text[at])));
      break;
    }
    default:
      if (!value.is(Value::Type::object) || !value.object()->items_inside())
        raise(cat("'", value.type_name(), "' object is not iterable"));
      out = *value.object()->items_inside();
      reserve_items(out.size());
  }
  return out;
}

}  // namespace troupe::engine::jinja
