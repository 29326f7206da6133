// Macros, and the bodies of call blocks.
#include <algorithm>

#include "engine/base/text.h"
#include "engine/jinja/machine.h"
#include "engine/jinja/machine_depth.h"

namespace troupe::engine::jinja {

/// A macro, or the body of a call block. It knows the scope in which it was written.
class Macro : public Object {
 public:
  Macro(const Stmt& statement, std::shared_ptr<Scope> scope)
      : statement_(statement), scope_(std::move(scope)) {}
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

  Value call(Machine& machine, Arguments& arguments) override {
    const Machine::Depth depth(machine);
    const std::shared_ptr<Scope> scope = scope_.lock();
    if (!scope) raise("a macro outlives its template");
    const Machine::Enter enter(machine, scope);
    bind(machine, arguments);
    return machine.captured(statement_.body);
  }

 private:
  // As jinja2.runtime.Macro: what is left over goes to varargs, kwargs and caller where the body
  // names them, else it is an error.
  void bind(Machine& machine, Arguments& arguments) const {
    const auto& parameters = statement_.parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const std::string& name = parameters[i].name;
      Value value = Value::undefined(cat("parameter '", name, "' was not provided"));
      if (i < arguments.positional.size())
        value = arguments.positional[i];
      else if (!take(arguments, name, value) && parameters[i].otherwise)
        value = machine.evaluate(*parameters[i].otherwise);
      machine.scope_->set(name, std::move(value));
    }
    const auto named_caller = [](const Parameter& parameter) { return parameter.name == "caller"; };
    if (statement_.uses_caller &&
        std::none_of(parameters.begin(), parameters.end(), named_caller)) {
      Value caller;
      take(arguments, "caller", caller);
      machine.scope_->set(
          "caller", caller.is(Value::Type::none) ? Value::undefined("No caller defined") : caller);
    }
    bind_rest(machine, arguments);
  }

  void bind_rest(Machine& machine, Arguments& arguments) const {
    const std::string what = cat("macro '", statement_.text, "'");
    if (statement_.uses_kwargs) {
      Dict named;
      for (auto& [name, value] : arguments.keyword) named.set(name, value);
      machine.scope_->set("kwargs", std::move(named));
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
      machine.scope_->set("varargs", std::move(rest));
    } else if (arguments.positional.size() > known) {
      raise(cat(what, " takes not more than ", known, " argument(s)"));
    }
  }

  // The argument of that name, if it is there, which it then is no more.
  static bool take(Arguments& arguments, std::string_view name, Value& into) {
    for (std::size_t i = 0; i < arguments.keyword.size(); ++i) {
      if (arguments.keyword[i].first != name) continue;
      into = arguments.keyword[i].second;
      arguments.keyword.erase(arguments.keyword.begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    }
    return false;
  }

  const Stmt& statement_;
  std::weak_ptr<Scope> scope_;
};

Value Machine::make_macro(const Stmt& statement) {
  charge(50);
  macro_scopes_.push_back(scope_);
  return Value(std::shared_ptr<Object>(std::make_shared<Macro>(statement, scope_)));
}

}  // namespace troupe::engine::jinja
