// Evaluates a template's syntax tree: names and scopes, statements, expressions. Bounded in steps,
// depth and size.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/jinja/arguments.h"
#include "engine/jinja/ast.h"

namespace troupe::engine::jinja {

struct MachineLimits {
  std::size_t steps = 5'000'000;     ///< statements, expressions, and what they go through
  int depth = 1500;                  ///< of the recursion of evaluation
  std::size_t bytes = 16u << 20;     ///< of one string, and of the output
  std::size_t items = 1u << 20;      ///< of one list
  std::int64_t memory = 64ll << 20;  ///< bytes of all values together
};

/// Names of one block, and the block around it.
class Scope {
 public:
  explicit Scope(std::shared_ptr<Scope> parent) : parent_(std::move(parent)) {}
  const Value* find(std::string_view name) const;
  void set(const std::string& name, Value value);

 private:
  std::shared_ptr<Scope> parent_;
  std::vector<std::pair<std::string, Value>> names_;
};

/// namespace(): the one kind of value that templates may change.
class Namespace : public Object {
 public:
  std::string type_name() const override { return "Namespace"; }
  std::string text() const override;
  std::optional<Value> attribute(std::string_view name) override;
  Dict values;

 private:
  mutable bool printing_ = false;  // it may hold itself
};

/// A function written in C++.
class Function : public Object {
 public:
  using Body = std::function<Value(Machine&, Arguments&)>;
  Function(std::string name, Body body) : name_(std::move(name)), body_(std::move(body)) {}
  std::string type_name() const override { return name_; }
  bool callable() const override { return true; }
  Value call(Machine& machine, Arguments& arguments) override { return body_(machine, arguments); }

 private:
  std::string name_;
  Body body_;
};
Value make_function(std::string name, Function::Body body);

class Machine {
 public:
  explicit Machine(MachineLimits limits = {});
  ~Machine();
  Machine(const Machine&) = delete;

  void define(const std::string& name, Value value) { top_->set(name, std::move(value)); }
  /// Renders the template. Throws Failure.
  std::string run(const Block& block);
  /// Ranges, in code points of the output, of the generation blocks.
  const std::vector<std::pair<std::size_t, std::size_t>>& generations() const {
    return generations_;
  }

  // For filters, tests, methods and functions:
  void charge(std::size_t steps);
  /// Before a string of `bytes` is made.
  void reserve(std::size_t bytes);
  /// Before a list of `count` is made, each taking `bytes`.
  void reserve_items(std::size_t count, std::size_t bytes = sizeof(Value));
  /// What comparing or writing `value` will cost.
  void weigh(const Value& value);
  /// str(value), within the limits.
  std::string text(const Value& value);
  Value call(const Value& callee, Arguments& arguments);
  Value filter(const std::string& name, const Value& value, Arguments& arguments);
  bool test(const std::string& name, const Value& value, Arguments& arguments);
  /// object.name and object[key], as templates see them.
  Value attribute(const Value& object, const std::string& name);
  Value item(const Value& object, const Value& key);
  /// What a loop goes through: items of a list, keys of a dict, characters of a string. At most
  /// `most` of a generator.
  std::vector<Value> items_of(const Value& value, std::size_t most = std::size_t(-1));
  Value make_namespace(Dict values);

 private:
  friend class Macro;
  enum class Flow { normal, break_, continue_ };
  class Depth;
  class Capture;
  class Enter;

  Flow execute(const Block& block);
  Flow execute(const Stmt& statement);
  Flow execute_kind(const Stmt& statement);
  Flow execute_if(const Stmt& statement);
  Flow execute_for(const Stmt& statement, const Value& through, int depth);
  void execute_set(const Stmt& statement);
  Flow execute_with(const Stmt& statement);
  void execute_filter(const Stmt& statement);
  void execute_call(const Stmt& statement);
  void execute_generation(const Stmt& statement);
  void assign(const Expr& target, const Value& value);
  void write(const std::string& text);
  std::string captured(const Block& block);
  std::vector<Value> filtered_items(const Stmt& loop, const Value& through);
  Value make_macro(const Stmt& statement);

  Value evaluate(const Expr& expr);
  Value evaluate_list(const Expr& expr, List::Kind kind);
  Value evaluate_dict(const Expr& expr);
  Value evaluate_call(const Expr& expr, Value* caller = nullptr);
  Value evaluate_filter(const Expr& expr, const Value* start);
  Value evaluate_compare(const Expr& expr);
  Value evaluate_subscript(const Expr& expr);
  Value evaluate_operator(const Expr& expr);
  Value name(const std::string& text);
  Arguments evaluate_arguments(const Expr& expr);

  MachineLimits limits_;
  std::size_t steps_ = 0;
  const std::int64_t live_before_ = live_bytes();
  bool located_ = false;  // the failure on its way out names its line
  int depth_ = 0;
  std::shared_ptr<Scope> top_, scope_;
  std::string output_;  // of the template
  std::string* out_;    // where text goes now: output_, or a macro's or block's own
  std::vector<std::pair<std::size_t, std::size_t>> generations_;
  std::size_t counted_bytes_ = 0,
              counted_characters_ = 0;  // of output_, so that spans need one pass
  std::vector<std::shared_ptr<Namespace>>
      namespaces_;  // emptied at the end: they may hold each other
  std::vector<std::shared_ptr<Scope>> macro_scopes_;  // macros know theirs weakly
};

// The library of the language, by name; nullptr when there is none. `parameters` as check_arguments
// reads them.
struct Filter {
  Value (*body)(Machine&, const Value&, Arguments&);
  const char* parameters;
};
struct Test {
  bool (*body)(Machine&, const Value&, Arguments&);
  const char* parameters;
};
const Filter* find_filter(std::string_view name);
const Filter* find_text_filter(std::string_view name);
const Filter* find_html_filter(std::string_view name);
const Filter* find_list_filter(std::string_view name);
const Filter* find_choice_filter(std::string_view name);
const Filter* find_value_filter(std::string_view name);
const Test* find_test(std::string_view name);
std::optional<Value> string_method(const Value& text, std::string_view name);
std::optional<Value> dict_method(const Value& dict, std::string_view name);
std::optional<Value> list_method(const Value& list, std::string_view name);
/// range, dict, namespace, cycler, joiner, lipsum, raise_exception.
void define_globals(Machine& machine);

// Operators (operators.cpp).
Value binary(Machine& machine, const std::string& op, const Value& left, const Value& right);
bool compare(Machine& machine, const std::string& op, const Value& left, const Value& right);
Value negate(const Value& value);
Value slice(Machine& machine, const Value& value, const Value& start, const Value& stop,
            const Value& step);
/// int(value) of a number; raises beyond 64 bits.
std::int64_t whole_number(const Value& value);

/// Raises when `value` is undefined: it was used where jinja2 does not let an undefined value be.
void require_defined(const Value& value);
/// An argument as an integer or a string; raises otherwise.
std::int64_t to_integer(const Value& value, std::string_view what);
const std::string& to_text(const Value& value, std::string_view what);

}  // namespace troupe::engine::jinja
