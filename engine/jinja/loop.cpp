#include "engine/jinja/loop.h"

#include "engine/base/text.h"

namespace troupe::engine::jinja {
namespace {

Value cycle(std::size_t index, const Arguments& arguments) {
  if (arguments.positional.empty()) raise("no items for cycling given");
  return arguments.positional[index % arguments.positional.size()];
}

}  // namespace

std::string Loop::text() const {
  return cat("<LoopContext ", index + 1, "/", items.size(), ">");
}

std::optional<Value> Loop::attribute(std::string_view name) {
  const std::size_t left = items.size() - index;
  if (name == "index") return Value(index + 1);
  if (name == "index0") return Value(index);
  if (name == "revindex") return Value(left);
  if (name == "revindex0") return Value(left - 1);
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(left == 1);
  if (name == "length") return Value(items.size());
  if (name == "depth") return Value(level_);
  if (name == "depth0") return Value(level_ - 1);
  if (name == "previtem")
    return index > 0 ? items[index - 1] : Value::undefined("there is no previous item");
  if (name == "nextitem")
    return left > 1 ? items[index + 1] : Value::undefined("there is no next item");
  if (name == "cycle")
    return make_function(
        "method", [at = index](Runtime&, Arguments& arguments) { return cycle(at, arguments); });
  if (name == "changed") {
    return make_function("method",
                         [weak = weak_from_this()](Runtime& runtime, Arguments& arguments) {
                           const auto loop = weak.lock();
                           if (!loop) raise("loop.changed outlives its loop");
                           return loop->changed(runtime, arguments);
                         });
  }
  return std::nullopt;
}

Value Loop::changed(Runtime& runtime, const Arguments& arguments) {
  if (!arguments.keyword.empty()) raise("changed() takes no keyword arguments");
  List now;
  now.kind = List::Kind::tuple;
  now.items = arguments.positional;
  const Value value = std::move(now);
  runtime.account(value);
  if (last_changed_ && equal(*last_changed_, value)) return false;
  depth_ = std::max(depth_, value.depth() + 1);
  last_changed_ = value;
  return true;
}

Value Loop::call(Runtime&, Arguments& arguments) {
  if (!recurse) raise("The loop must have the 'recursive' marker to be called recursively.");
  if (arguments.positional.size() != 1) raise("loop() takes the one thing to go through");
  return recurse(arguments.positional[0]);
}

}  // namespace troupe::engine::jinja
