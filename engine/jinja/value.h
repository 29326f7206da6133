// Values of the template language, with Python's semantics where Jinja2 has them
// (jinja.palletsprojects.com, 3.1).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/jinja/meter.h"

namespace troupe::engine::jinja {

class Runtime;
class Value;

/// Throws Failure: an error of the template or its input. Caught in ChatTemplate only.
[[noreturn]] void raise(std::string what);

/// The arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keyword;

  /// The argument at `index`, or the one called `name`; nullptr when absent.
  const Value* find(std::size_t index, std::string_view name) const;
};

/// Something with attributes or that can be called: loop, namespaces, macros, bound methods.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::string type_name() const = 0;
  /// str(object).
  virtual std::string text() const { return "<" + type_name() + ">"; }
  /// The items of an iterable object, else nullptr.
  virtual const std::vector<Value>* items_inside() const { return nullptr; }
  virtual std::optional<Value> attribute(std::string_view name);
  virtual bool callable() const { return false; }
  /// Levels of the values inside; whatever holds values says so, because values are destroyed
  /// recursively.
  virtual int depth() const { return 0; }
  virtual Value call(Runtime& runtime, Arguments& arguments);
};

struct List;
struct Dict;

inline constexpr int max_value_depth = 100;

class Value {
 public:
  enum class Type { undefined, none, boolean, integer, real, string, list, dict, object };

  Value() = default;  ///< None
  Value(bool value) : data_(value) {}
  Value(int value) : data_(std::int64_t{value}) {}
  Value(std::int64_t value) : data_(value) {}
  Value(std::size_t value) : data_(static_cast<std::int64_t>(value)) {}
  Value(double value) : data_(value) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(std::string text);
  Value(List list);
  Value(Dict dict);
  Value(std::shared_ptr<Object> object);
  /// A string that is already escaped (markupsafe.Markup): the result of `safe` and `escape` and of
  /// operations on them.
  static Value markup(std::string text);
  static Value undefined(std::string why);
  static Value from_json(const Json& json);

  Type type() const;
  bool is(Type wanted) const { return type() == wanted; }
  bool is_number() const { return is(Type::integer) || is(Type::real) || is(Type::boolean); }
  bool is_integral() const { return is(Type::integer) || is(Type::boolean); }
  bool is_markup() const { return markup_; }

  bool boolean() const { return std::get<bool>(data_); }
  std::int64_t integer() const {
    return is(Type::boolean) ? boolean() : std::get<std::int64_t>(data_);
  }  ///< booleans are 0 and 1
  double real() const {
    return is(Type::real) ? std::get<double>(data_) : static_cast<double>(integer());
  }
  const std::string& string() const { return *std::get<std::shared_ptr<const std::string>>(data_); }
  const List& list() const { return *std::get<std::shared_ptr<const List>>(data_); }
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  const std::shared_ptr<Object>& object() const { return std::get<std::shared_ptr<Object>>(data_); }
  /// Why it is undefined ("'x' is undefined").
  const std::string& reason() const {
    return std::get<Undefined>(data_).why ? *std::get<Undefined>(data_).why : none_reason();
  }

  bool truth() const;
  /// "str", "int", "dict": Python's name of the type.
  std::string type_name() const;
  /// Levels of lists and dicts; bounded by max_value_depth, because values are traversed
  /// recursively.
  int depth() const;
  /// True when both are the very same object ("is" of Python).
  bool same(const Value& other) const;

 private:
  struct Undefined {
    std::shared_ptr<const std::string> why;
  };
  static const std::string& none_reason();
  std::variant<std::monostate, bool, std::int64_t, double, std::shared_ptr<const std::string>,
               std::shared_ptr<const List>, std::shared_ptr<const Dict>, std::shared_ptr<Object>,
               Undefined>
      data_;
  bool markup_ = false;
};

/// Position in a generator: each item is returned once. A failure after the last item is raised
/// when the consumer reaches it, as in Python.
struct Progress {
  std::size_t taken = 0;
  std::string failure;
};

/// A list, a tuple, a range, a view of a dict (has a length, cannot be indexed), or the items of a
/// generator (has no length).
struct List {
  enum class Kind { list, tuple, range, view, generator };
  std::vector<Value> items;
  Kind kind = Kind::list;
  int depth = 1;  ///< set when it becomes a Value
  /// A view: its printed name ("dict_items"). A tuple: "group" for the result of groupby.
  const char* view = "";
  std::array<std::int64_t, 3> range = {};  ///< of a range: start, stop, step
  std::shared_ptr<Progress> progress;      ///< of a generator
  bool indexable() const {
    return kind == Kind::list || kind == Kind::tuple || kind == Kind::range;
  }
  bool is_plain() const { return kind == Kind::list || kind == Kind::tuple; }
};

/// Items are in the order of insertion.
struct Dict {
  std::vector<std::pair<Value, Value>> items;
  int depth = 1;  ///< set when it becomes a Value
  const Value* find(const Value& key) const;
  const Value* find_text(std::string_view key) const;
  void set(Value key, Value value);
};

// The following charge the meter: the cost of comparing, hashing or looking up follows the size.
bool equal(const Value& a, const Value& b);
/// a < b; raises when Python would.
bool less(const Value& a, const Value& b);
/// The same for equal values.
std::size_t hash_of(const Value& value);

/// Approximate number of characters and items of `value`, counted up to `limit`: the cost of
/// writing or comparing it.
std::size_t cost_of(const Value& value, std::size_t limit);

}  // namespace troupe::engine::jinja
