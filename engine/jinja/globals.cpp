#include "engine/jinja/globals.h"

#include <algorithm>

#include "engine/base/text/text.h"

namespace troupe::engine::jinja {
namespace {

constexpr std::int64_t max_range_items = 100'000;  // jinja2's sandbox has the same

Value range(Runtime& runtime, Arguments& arguments) {
  check_arguments("range", "/ start stop? step?", arguments);
  const auto& given = arguments.positional;
  const std::int64_t start = given.size() > 1 ? to_integer(given[0], "range's start") : 0;
  const std::int64_t stop = to_integer(given[given.size() > 1 ? 1 : 0], "range's end"),
                     step = given.size() > 2 ? to_integer(given[2], "range's step") : 1;
  if (step == 0) raise("range() arg 3 must not be zero");
  List out;
  out.kind = List::Kind::range;
  out.range = {start, stop, step};
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<std::int64_t>(out.items.size()) >= max_range_items)
      raise(cat("a range of more than ", max_range_items, " items"));
    out.items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  runtime.reserve_items(out.items.size());
  return out;
}

Dict dict_of(Runtime& runtime, Arguments& arguments) {
  Dict out;
  if (arguments.positional.size() > 1)
    raise(cat("dict expected at most 1 argument, got ", arguments.positional.size()));
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional[0];
    require_defined(from);
    if (from.is(Value::Type::dict)) {
      out = from.dict();
    } else {
      for (const Value& pair : runtime.items_of(from)) {
        auto items = runtime.items_of(pair);
        if (items.size() != 2) raise("dict() needs pairs");
        require_hashable(items[0]);
        out.set(std::move(items[0]), std::move(items[1]));
      }
    }
  }
  for (auto& [name, value] : arguments.keyword) out.set(name, value);
  return out;
}

/// cycler("a", "b"): next() cycles through them.
class Cycler : public Object, public std::enable_shared_from_this<Cycler> {
 public:
  explicit Cycler(std::vector<Value> items) : items_(std::move(items)) {
    for (const Value& item : items_) depth_ = std::max(depth_, item.depth() + 1);
  }
  int depth() const override { return depth_; }
  std::string type_name() const override { return "Cycler"; }
  std::optional<Value> attribute(std::string_view name) override {
    if (name == "current") return items_[at_];
    if (name != "next" && name != "reset") return std::nullopt;
    return make_function(
        "method", Value(std::shared_ptr<Object>(shared_from_this())),
        [self = shared_from_this(), next = name == "next"](Runtime&, Arguments&) -> Value {
          if (!next) {
            self->at_ = 0;
            return Value();
          }
          const Value out = self->items_[self->at_];
          self->at_ = (self->at_ + 1) % self->items_.size();
          return out;
        });
  }

 private:
  std::vector<Value> items_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

Value cycler(Runtime&, Arguments& arguments) {
  if (!arguments.keyword.empty()) raise("cycler() takes no keyword arguments");
  if (arguments.positional.empty()) raise("at least one item has to be provided");
  return Value(std::shared_ptr<Object>(std::make_shared<Cycler>(arguments.positional)));
}

// The separator, except the first time.
Value joiner(Runtime&, Arguments& arguments) {
  check_arguments("joiner", "sep?", arguments);
  const Value* separator = arguments.find(0, "sep");
  auto used = std::make_shared<bool>(false);
  return make_function("joiner", separator ? *separator : Value(),
                       [text = separator ? *separator : Value(", "), used](Runtime&, Arguments&) {
                         return std::exchange(*used, true) ? text : Value("");
                       });
}

Value raise_exception(Runtime& runtime, Arguments& arguments) {
  check_arguments("raise_exception", "message", arguments);
  raise(runtime.text(*arguments.find(0, "message")));
}

Value lipsum(Runtime&, Arguments&) {
  raise("lipsum writes random text, and a template must render the same each time");
}

}  // namespace

void define_globals(Scope& scope) {
  scope.set("range", make_function("function", range));
  scope.set("dict",
            make_function("type", [](Runtime& m, Arguments& a) -> Value { return dict_of(m, a); }));
  scope.set("namespace", make_function("type", [](Runtime& m, Arguments& a) {
              return m.make_namespace(dict_of(m, a));
            }));
  scope.set("cycler", make_function("type", cycler));
  scope.set("joiner", make_function("type", joiner));
  scope.set("lipsum", make_function("function", lipsum));
  scope.set("raise_exception", make_function("function", raise_exception));
}

}  // namespace troupe::engine::jinja
