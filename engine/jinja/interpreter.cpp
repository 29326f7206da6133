#include "engine/jinja/interpreter.h"

#include <algorithm>
#include <functional>
#include <memory>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/jinja/globals.h"
#include "engine/jinja/runtime.h"

namespace troupe::engine::jinja {

namespace {

/// The `loop` variable of a for block.
class Loop : public Object, public std::enable_shared_from_this<Loop> {
 public:
  Loop(std::vector<Value> through, int level)
      : items(std::move(through)), level_(level), counted_(items.capacity() * sizeof(Value)) {
    for (const Value& item : items) depth_ = std::max(depth_, item.depth() + 1);
  }
  std::string type_name() const override { return "LoopContext"; }
  int depth() const override { return depth_; }
  std::optional<Value> attribute(std::string_view name) override;
  std::string text() const override;
  bool callable() const override { return true; }
  const std::vector<Value>* items_inside() const override { return &items; }
  Value call(Runtime& runtime, Arguments& arguments) override;

  std::vector<Value> items;
  std::size_t index = 0;
  std::function<std::string(const Value&)> recurse;  ///< of recursive loops, while they run

 private:
  Value changed(Runtime& runtime, const Arguments& arguments);
  int level_;
  MemoryCount counted_;
  int depth_ = 0;
  std::optional<Value> last_changed_;
};

Value cycle(std::size_t index, const Arguments& arguments) {
  if (arguments.positional.empty()) raise("no items for cycling given");
  return arguments.positional[index % arguments.positional.size()];
}

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

}  // namespace

/// Captures the output while it lives.
class Interpreter::Capture {
 public:
  explicit Capture(Interpreter& interpreter)
      : interpreter_(interpreter), before_(interpreter.out_), outer_(before_->capacity()) {
    interpreter.out_ = &text;
  }
  ~Capture() { interpreter_.out_ = before_; }
  Capture(const Capture&) = delete;
  std::string text;

 private:
  Interpreter& interpreter_;
  std::string* before_;
  MemoryCount outer_;  // the text that waits for this one
};

/// A macro, or the body of a call block, with the scope in which it is defined.
class Interpreter::Macro : public Object {
 public:
  Macro(Interpreter& interpreter, const Stmt& statement, const std::shared_ptr<Scope>& scope)
      : interpreter_(interpreter), statement_(statement), scope_(scope) {}
  std::string type_name() const override { return "Macro"; }
  bool callable() const override { return true; }
  std::string text() const override {
    return cat("<Macro ",
               statement_.kind == Stmt::Kind::macro ? cat("'", statement_.text, "'") : "anonymous",
               ">");
  }
  std::optional<Value> attribute(std::string_view name) override {
    if (name == "name")
      return statement_.kind == Stmt::Kind::macro ? Value(statement_.text) : Value();
    if (name == "catch_kwargs") return statement_.uses_kwargs;
    if (name == "catch_varargs") return statement_.uses_varargs;
    if (name == "caller") return statement_.uses_caller;
    if (name != "arguments") return std::nullopt;
    List names;
    names.kind = List::Kind::tuple;
    for (const Parameter& parameter : statement_.parameters)
      names.items.emplace_back(parameter.name);
    return names;
  }

  Value call(Runtime& runtime, Arguments& arguments) override {
    const Runtime::DepthGuard depth(runtime);
    const std::shared_ptr<Scope> scope = scope_.lock();
    if (!scope) raise("a macro outlives its template");
    const Evaluator::ScopeGuard guard(interpreter_.evaluator_, scope);
    bind(arguments);
    return interpreter_.captured(statement_.body);
  }

 private:
  // Binds as jinja2.runtime.Macro does: remaining arguments go to varargs, kwargs and caller if the
  // body names them; otherwise they are an error.
  void bind(Arguments& arguments) const {
    const std::shared_ptr<Scope>& scope = interpreter_.evaluator_.scope();
    const auto& parameters = statement_.parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const std::string& name = parameters[i].name;
      Value value = Value::undefined(cat("parameter '", name, "' was not provided"));
      if (i < arguments.positional.size())
        value = arguments.positional[i];
      else if (!take(arguments, name, value) && parameters[i].otherwise)
        value = interpreter_.evaluator_.evaluate(*parameters[i].otherwise);
      scope->set(name, std::move(value));
    }
    const auto named_caller = [](const Parameter& parameter) { return parameter.name == "caller"; };
    if (statement_.uses_caller &&
        std::none_of(parameters.begin(), parameters.end(), named_caller)) {
      Value caller;
      take(arguments, "caller", caller);
      scope->set("caller",
                 caller.is(Value::Type::none) ? Value::undefined("No caller defined") : caller);
    }
    bind_rest(arguments);
  }

  void bind_rest(Arguments& arguments) const {
    const std::shared_ptr<Scope>& scope = interpreter_.evaluator_.scope();
    const std::string what = cat("macro '", statement_.text, "'");
    if (statement_.uses_kwargs) {
      Dict named;
      for (auto& [name, value] : arguments.keyword) named.set(name, value);
      scope->set("kwargs", std::move(named));
    } else if (!arguments.keyword.empty()) {
      if (arguments.keyword[0].first == "caller")
        raise(cat(
            what,
            " was invoked with two values for the special caller argument, or takes no caller"));
      raise(cat(what, " takes no keyword argument '", arguments.keyword[0].first, "'"));
    }
    const std::size_t known = statement_.parameters.size();
    if (statement_.uses_varargs) {
      List rest;
      rest.kind = List::Kind::tuple;
      for (std::size_t i = known; i < arguments.positional.size(); ++i)
        rest.items.push_back(arguments.positional[i]);
      scope->set("varargs", std::move(rest));
    } else if (arguments.positional.size() > known) {
      raise(cat(what, " takes not more than ", known, " argument(s)"));
    }
  }

  // Removes the argument called `name` and stores it in `into`; false if there is none.
  static bool take(Arguments& arguments, std::string_view name, Value& into) {
    for (std::size_t i = 0; i < arguments.keyword.size(); ++i) {
      if (arguments.keyword[i].first != name) continue;
      into = arguments.keyword[i].second;
      arguments.keyword.erase(arguments.keyword.begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    }
    return false;
  }

  Interpreter& interpreter_;
  const Stmt& statement_;
  std::weak_ptr<Scope> scope_;
};

Interpreter::Interpreter(RuntimeLimits limits)
    : runtime_(limits),
      globals_(std::make_shared<Scope>(nullptr)),
      evaluator_(runtime_, globals_),
      out_(&output_) {
  define_globals(*globals_);
}

std::string Interpreter::run(const Block& block) {
  // The names of the template are in a scope of their own above its input, as in jinja2's context.
  const Evaluator::ScopeGuard scope(evaluator_, globals_);
  execute(block);
  return std::move(output_);
}

void Interpreter::write(const std::string& text) {
  runtime_.grow(out_->size(), text.size());
  out_->append(text);
}

std::string Interpreter::captured(const Block& block) {
  Capture capture(*this);
  execute(block);
  return std::move(capture.text);
}

Interpreter::Flow Interpreter::execute(const Block& block) {
  for (const auto& statement : block)
    if (const Flow flow = execute(*statement); flow != Flow::normal) return flow;
  return Flow::normal;
}

// The innermost statement adds its line to the message.
Interpreter::Flow Interpreter::execute(const Stmt& statement) {
  try {
    runtime_.charge(1);
    const Runtime::DepthGuard depth(runtime_);
    return execute_kind(statement);
  } catch (const Failure& failure) {
    if (std::exchange(located_, true)) throw;
    throw Failure({failure.error().code, cat("line ", statement.line, ": ", failure.error().what)});
  }
}

Interpreter::Flow Interpreter::execute_kind(const Stmt& statement) {
  using Kind = Stmt::Kind;
  switch (statement.kind) {
    case Kind::text:
      write(statement.text);
      break;
    case Kind::print:
      write(runtime_.text(evaluator_.evaluate(*statement.expr)));
      break;
    case Kind::if_:
      return execute_if(statement);
    case Kind::for_:
      return execute_for(statement, evaluator_.evaluate(*statement.expr), 1);
    case Kind::set:
    case Kind::set_block:
      execute_set(statement);
      break;
    case Kind::with:
      return execute_with(statement);
    case Kind::macro:
      evaluator_.scope()->set(statement.text, make_macro(statement));
      break;
    case Kind::call:
      execute_call(statement);
      break;
    case Kind::filter:
      execute_filter(statement);
      break;
    case Kind::generation:
      execute_generation(statement);
      break;
    case Kind::break_:
      return Flow::break_;
    case Kind::continue_:
      return Flow::continue_;
  }
  return Flow::normal;
}

Interpreter::Flow Interpreter::execute_if(const Stmt& statement) {
  const Stmt* branch = &statement;
  while (!evaluator_.evaluate(*branch->expr).truth()) {
    const bool chain =
        branch->otherwise.size() == 1 && branch->otherwise[0]->kind == Stmt::Kind::if_;
    if (!chain) return execute(branch->otherwise);
    branch = branch->otherwise[0].get();
  }
  return execute(branch->body);
}

std::vector<Value> Interpreter::filtered_items(const Stmt& loop, const Value& iterable) {
  std::vector<Value> items = runtime_.items_of(iterable);
  if (!loop.condition) return items;
  std::vector<Value> out;
  for (Value& item : items) {
    const Evaluator::ScopeGuard scope(evaluator_);
    assign(*loop.target, item);
    if (evaluator_.evaluate(*loop.condition).truth()) out.push_back(std::move(item));
  }
  return out;
}

Interpreter::Flow Interpreter::execute_for(const Stmt& statement, const Value& iterable,
                                           int depth) {
  auto loop = std::make_shared<Loop>(filtered_items(statement, iterable), depth);
  if (statement.recursive) {
    loop->recurse = [this, &statement, depth](const Value& inner) {
      const Runtime::DepthGuard guard(runtime_);
      Capture capture(*this);
      execute_for(statement, inner, depth + 1);
      return std::move(capture.text);
    };
  }
  bool finished = false;  // a pass without break or continue: jinja2 then skips the else block
  for (loop->index = 0; loop->index < loop->items.size(); ++loop->index) {
    runtime_.charge(1);
    const Evaluator::ScopeGuard scope(evaluator_);
    evaluator_.scope()->set("loop", Value(std::shared_ptr<Object>(loop)));
    assign(*statement.target, loop->items[loop->index]);
    const Flow flow = execute(statement.body);
    if (flow == Flow::break_) break;
    finished |= flow == Flow::normal;
  }
  loop->recurse = nullptr;
  if (finished) return Flow::normal;
  const Evaluator::ScopeGuard scope(evaluator_);
  return execute(statement.otherwise);
}

void Interpreter::assign(const Expr& target, const Value& value) {
  if (target.kind == Expr::Kind::name) {
    evaluator_.scope()->set(target.text, value);
    return;
  }
  if (target.kind == Expr::Kind::attribute) {
    const Value space = evaluator_.evaluate(*target.parts[0]);
    auto* found =
        space.is(Value::Type::object) ? dynamic_cast<Namespace*>(space.object().get()) : nullptr;
    if (!found) raise("cannot assign attribute on non-namespace object");
    found->values.set(target.text, value);
    return;
  }
  const std::vector<Value> items = runtime_.items_of(value);
  if (value.is(Value::Type::undefined)) raise(value.reason());
  if (items.size() != target.parts.size())
    raise(items.size() > target.parts.size()
              ? cat("too many values to unpack (expected ", target.parts.size(), ")")
              : cat("not enough values to unpack (expected ", target.parts.size(), ", got ",
                    items.size(), ")"));
  for (std::size_t i = 0; i < items.size(); ++i) assign(*target.parts[i], items[i]);
}

void Interpreter::execute_set(const Stmt& statement) {
  if (statement.kind == Stmt::Kind::set) {
    assign(*statement.target, evaluator_.evaluate(*statement.expr));
    return;
  }
  Value body;
  {
    const Evaluator::ScopeGuard scope(evaluator_);
    body = captured(statement.body);
    if (statement.expr) body = evaluator_.evaluate_filter(*statement.expr, &body);
  }
  assign(*statement.target, body);
}

Interpreter::Flow Interpreter::execute_with(const Stmt& statement) {
  std::vector<Value> values;
  for (const auto& [target, expr] : statement.assignments)
    values.push_back(evaluator_.evaluate(*expr));
  const Evaluator::ScopeGuard scope(evaluator_);
  for (std::size_t i = 0; i < values.size(); ++i)
    assign(*statement.assignments[i].first, values[i]);
  return execute(statement.body);
}

void Interpreter::execute_filter(const Stmt& statement) {
  const Evaluator::ScopeGuard scope(evaluator_);
  const Value body = captured(statement.body);
  write(to_text(evaluator_.evaluate_filter(*statement.expr, &body), "what a filter block gives"));
}

void Interpreter::execute_call(const Stmt& statement) {
  Value caller = make_macro(statement);
  write(to_text(evaluator_.evaluate_call(*statement.expr, &caller), "what a call block gives"));
}

void Interpreter::execute_generation(const Stmt& statement) {
  counted_characters_ += count_code_points(std::string_view(output_).substr(counted_bytes_));
  counted_bytes_ = output_.size();
  const std::size_t begin = counted_characters_;
  const Evaluator::ScopeGuard scope(evaluator_);
  const std::string body = captured(statement.body);
  generations_.emplace_back(begin, begin + count_code_points(body));
  write(body);
}

Value Interpreter::make_macro(const Stmt& statement) {
  runtime_.charge(50);
  macro_scopes_.push_back(evaluator_.scope());
  return Value(
      std::shared_ptr<Object>(std::make_shared<Macro>(*this, statement, evaluator_.scope())));
}

}  // namespace troupe::engine::jinja
