#include "engine/jinja/evaluator.h"

#include "engine/base/text/text.h"
#include "engine/jinja/operators.h"

namespace troupe::engine::jinja {

const Value* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope; scope = scope->parent_.get()) {
    work(4 * scope->names_.size());
    for (const auto& [key, value] : scope->names_)
      if (key == name) return &value;
  }
  return nullptr;
}
void Scope::set(const std::string& name, Value value) {
  work(4 * names_.size());
  for (auto& [key, old] : names_)
    if (key == name) {
      old = std::move(value);
      return;
    }
  names_.emplace_back(name, std::move(value));
}

Value Evaluator::name(const std::string& text) {
  const Value* found = scope_->find(text);
  return found ? *found : Value::undefined(cat("'", text, "' is undefined"));
}

Value Evaluator::evaluate_list(const Expr& expr, List::Kind kind) {
  List out;
  out.kind = kind;
  for (const auto& part : expr.parts) out.items.push_back(evaluate(*part));
  return out;
}

Value Evaluator::evaluate_dict(const Expr& expr) {
  Dict out;
  for (std::size_t i = 0; i + 1 < expr.parts.size(); i += 2) {
    Value key = evaluate(*expr.parts[i]);
    require_hashable(key);
    out.set(std::move(key), evaluate(*expr.parts[i + 1]));
  }
  return out;
}

Arguments Evaluator::evaluate_arguments(const Expr& expr) {
  Arguments out;
  for (std::size_t i = 1; i < expr.parts.size(); ++i)
    out.positional.push_back(evaluate(*expr.parts[i]));
  for (const Keyword& keyword : expr.keywords) {
    Value value = evaluate(*keyword.value);
    if (keyword.name.empty()) {
      for (Value& item : runtime_.items_of(value)) out.positional.push_back(std::move(item));
    } else if (keyword.name == "**") {
      if (!value.is(Value::Type::dict)) raise("argument after ** must be a mapping");
      for (const auto& [key, item] : value.dict().items)
        out.keyword.emplace_back(to_text(key, "a keyword"), item);
    } else {
      out.keyword.emplace_back(keyword.name, std::move(value));
    }
  }
  return out;
}

Value Evaluator::evaluate_call(const Expr& expr, const Value* caller) {
  const Value callee = evaluate(*expr.parts[0]);
  Arguments arguments = evaluate_arguments(expr);
  if (caller) arguments.keyword.emplace_back("caller", *caller);
  return runtime_.call(callee, arguments);
}

Value Evaluator::evaluate_filter(const Expr& expr, const Value* start) {
  Value value;
  if (expr.parts[0])
    value = expr.parts[0]->kind == Expr::Kind::filter ? evaluate_filter(*expr.parts[0], start)
                                                      : evaluate(*expr.parts[0]);
  else if (start)
    value = *start;
  Arguments arguments = evaluate_arguments(expr);
  return runtime_.filter(expr.text, value, arguments);
}

Value Evaluator::evaluate_compare(const Expr& expr) {
  Value left = evaluate(*expr.parts[0]);
  for (std::size_t i = 0; i < expr.operators.size(); ++i) {
    Value right = evaluate(*expr.parts[i + 1]);
    if (!compare(runtime_, expr.operators[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Evaluator::evaluate(const Expr& expr) {
  runtime_.charge(1);
  const Runtime::DepthGuard depth(runtime_);
  using Kind = Expr::Kind;
  switch (expr.kind) {
    case Kind::literal:
      return expr.value;
    case Kind::name:
      return name(expr.text);
    case Kind::list:
      return evaluate_list(expr, List::Kind::list);
    case Kind::tuple:
      return evaluate_list(expr, List::Kind::tuple);
    case Kind::dict:
      return evaluate_dict(expr);
    case Kind::attribute:
      return runtime_.attribute(evaluate(*expr.parts[0]), expr.text);
    case Kind::item:
    case Kind::slice:
      return evaluate_subscript(expr);
    case Kind::call:
      return evaluate_call(expr);
    case Kind::filter:
      return evaluate_filter(expr, nullptr);
    case Kind::test: {
      const Value value = evaluate(*expr.parts[0]);
      Arguments arguments = evaluate_arguments(expr);
      return runtime_.test(expr.text, value, arguments) != expr.negated;
    }
    default:
      return evaluate_operator(expr);
  }
}

Value Evaluator::evaluate_subscript(const Expr& expr) {
  const auto part = [&](std::size_t i) {
    return expr.parts[i] ? evaluate(*expr.parts[i]) : Value();
  };
  const Value object = part(0), first = part(1);
  if (expr.kind == Expr::Kind::item) return runtime_.item(object, first);
  const Value stop = part(2), step = part(3);
  return slice(runtime_, object, first, stop, step);
}

Value Evaluator::evaluate_operator(const Expr& expr) {
  using Kind = Expr::Kind;
  const auto part = [&](std::size_t i) { return evaluate(*expr.parts[i]); };
  if (expr.kind == Kind::compare) return evaluate_compare(expr);
  if (expr.kind == Kind::conditional) {
    if (part(1).truth()) return part(0);
    return expr.parts[2] ? part(2)
                         : Value::undefined(
                               "the inline if-expression evaluated to false and no else section "
                               "was defined.");
  }
  Value left = part(0);
  switch (expr.kind) {
    case Kind::negate:
      return negate(left);
    case Kind::plus:
      return negate(negate(left));
    case Kind::logical_not:
      return !left.truth();
    case Kind::logical_and:
      return left.truth() ? part(1) : left;
    case Kind::logical_or:
      return left.truth() ? left : part(1);
    default:
      return binary(runtime_, expr.text, left, part(1));
  }
}

}  // namespace troupe::engine::jinja
