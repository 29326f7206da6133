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

#include "engine/base/json.h"

namespace troupe::engine::jinja {

class Machine;
class Value;

/// Ends a rendering: an error of the template or of what it was given. Caught in ChatTemplate,
/// nowhere else.
[[noreturn]] void raise(std::string what);

/// What a function is called with.
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
  /// What `is iterable` says, and whether loops may go through it.
  virtual const std::vector<Value>* items_inside() const { return nullptr; }
  virtual std::optional<Value> attribute(std::string_view name);
  virtual bool callable() const { return false; }
  /// Levels of lists and dicts inside.
  virtual int depth() const { return 0; }
  virtual Value call(Machine& machine, Arguments& arguments);
};

struct List;
struct Dict;

inline constexpr int deepest_value = 100;

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
  Value(std::shared_ptr<Object> object) : data_(std::move(object)) {}
  /// A text that counts as escaped already (markupsafe.Markup): what `safe` and `escape` give, and
  /// what is made of them.
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
  /// Levels of lists and dicts; bounded by deepest_value, because values are gone through by
  /// recursion.
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

/// How far a generator was gone through: each item is given once. A failure behind the last item is
/// raised by who gets that far, as Python's generators work only when they are asked.
struct Progress {
  std::size_t taken = 0;
  std::string failure;
};

/// A list, a tuple, a range, a view of a dict (which has a length but nothing to index), or what a
/// generator would give (no length either).
struct List {
  enum class Kind { list, tuple, range, view, generator };
  std::vector<Value> items;
  Kind kind = Kind::list;
  int depth = 1;          ///< set when it becomes a Value
  const char* view = "";  ///< of a view: what it prints as ("dict_items"); of a tuple: "group" when
                          ///< groupby made it
  std::array<std::int64_t, 3> range = {};  ///< of a range: start, stop, step
  std::shared_ptr<Progress> progress;      ///< of a generator
  bool indexable() const {
    return kind == Kind::list || kind == Kind::tuple || kind == Kind::range;
  }
  bool is_plain() const { return kind == Kind::list || kind == Kind::tuple; }
};

/// In the order of insertion.
struct Dict {
  std::vector<std::pair<Value, Value>> items;
  int depth = 1;  ///< set when it becomes a Value
  const Value* find(const Value& key) const;
  const Value* find_text(std::string_view key) const;
  void set(Value key, Value value);
};

bool equal(const Value& a, const Value& b);
/// a < b; raises when Python would.
bool less(const Value& a, const Value& b);

/// Bytes that the texts, lists and dicts of this thread hold now: what the machine bounds.
std::int64_t live_bytes();
/// Counts what a value holds, for as long as it lives.
class Counted {
 public:
  explicit Counted(std::size_t bytes);
  ~Counted();
  Counted(const Counted&) = delete;

 private:
  std::int64_t bytes_;
};

/// About how many characters and items `value` has, counted up to `limit`: what writing or
/// comparing it costs.
std::size_t weight(const Value& value, std::size_t limit);

/// str(value), as {{ value }} prints it.
std::string to_string(const Value& value);
std::string to_string(const Dict& dict);
/// repr(value).
std::string to_repr(const Value& value);
/// ascii(value): repr with nothing beyond ASCII.
std::string to_ascii(const Value& value);
std::string real_to_string(double value);

struct JsonStyle {
  bool ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;
  std::optional<std::string> item_separator, key_separator;
};
/// json.dumps(value).
std::string to_json(const Value& value, const JsonStyle& style);

}  // namespace troupe::engine::jinja
