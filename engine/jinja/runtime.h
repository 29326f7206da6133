// Runtime: what a running template may call, bounded in steps, depth and memory.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/jinja/value.h"

namespace troupe::engine::jinja {

/// Raises the errors of Python for the arguments of a call: too many, an unknown name, a repeated
/// name, a missing argument. `parameters` names them in order, with "?" after an optional one ("old
/// new count?"); a leading "/ " means that none may be given by name; "*" allows any arguments.
void check_arguments(std::string_view callee, std::string_view parameters,
                     const Arguments& arguments);

/// Raises for values that cannot be keys of a dict: lists, dicts, and tuples of them.
void require_hashable(const Value& key);

/// namespace(): the only mutable value.
class Namespace : public Object {
 public:
  std::string type_name() const override { return "Namespace"; }
  std::string text() const override;
  std::optional<Value> attribute(std::string_view name) override;
  Dict values;

 private:
  mutable bool printing_ = false;  // it may refer to itself
};

/// A function written in C++.
class Function : public Object {
 public:
  using Body = std::function<Value(Runtime&, Arguments&)>;
  Function(std::string name, Body body, int depth)
      : name_(std::move(name)), body_(std::move(body)), depth_(depth) {}
  std::string type_name() const override { return name_; }
  bool callable() const override { return true; }
  int depth() const override { return depth_; }
  Value call(Runtime& runtime, Arguments& arguments) override { return body_(runtime, arguments); }

 private:
  std::string name_;
  Body body_;
  int depth_;
};
Value make_function(std::string name, Function::Body body);
/// A function that holds `held`: a method of it, for example.
Value make_function(std::string name, const Value& held, Function::Body body);

/// The services that filters, tests, methods and functions use: limits, calls, and access to
/// attributes and items.
class Runtime {
 public:
  /// Bounds the recursion of evaluation while it lives.
  class DepthGuard {
   public:
    explicit DepthGuard(Runtime& runtime);
    ~DepthGuard() { --runtime_.depth_; }
    DepthGuard(const DepthGuard&) = delete;

   private:
    Runtime& runtime_;
  };

  explicit Runtime(RuntimeLimits limits = {}) : meter_(limits) {}
  ~Runtime();
  Runtime(const Runtime&) = delete;

  const RuntimeLimits& limits() const { return meter_.limits(); }
  void charge(std::size_t steps) { meter_.charge(steps); }
  /// Called before a string of `bytes` is made.
  void reserve(std::size_t bytes);
  /// Called before `more` bytes are appended to a string of `size` bytes.
  void grow(std::size_t size, std::size_t more);
  /// Called before a list of `count` items of `bytes` each is made.
  void reserve_items(std::size_t count, std::size_t bytes = sizeof(Value));
  /// Charges the cost of going through a list or dict and what is in it.
  void account(const Value& value);
  /// Charges the cost of going through a text, character by character.
  void charge_text(const Value& value);
  /// str(value), within the limits.
  std::string text(const Value& value);
  Value call(const Value& callee, Arguments& arguments);
  Value filter(const std::string& name, const Value& value, Arguments& arguments);
  bool test(const std::string& name, const Value& value, Arguments& arguments);
  /// object.name and object[key], as templates see them.
  Value attribute(const Value& object, const std::string& name);
  Value item(const Value& object, const Value& key);
  /// The items that a loop iterates over: items of a list, keys of a dict, characters of a string.
  /// At most `max_items` of a generator.
  std::vector<Value> items_of(const Value& value, std::size_t max_items = std::size_t(-1));
  Value make_namespace(Dict values);

 private:
  Meter meter_;
  int depth_ = 0;
  // Cleared by the destructor: namespaces may refer to each other.
  std::vector<std::shared_ptr<Namespace>> namespaces_;
};

/// Raises if `value` is undefined.
void require_defined(const Value& value);
/// An argument as an integer or a string; raises otherwise.
std::int64_t to_integer(const Value& value, std::string_view what);
const std::string& to_text(const Value& value, std::string_view what);

}  // namespace troupe::engine::jinja
