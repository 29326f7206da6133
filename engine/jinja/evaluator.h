// Evaluator: names, scopes and expressions of a template.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/jinja/ast.h"
#include "engine/jinja/runtime.h"

namespace troupe::engine::jinja {

/// The names of one block, and the enclosing scope.
class Scope {
 public:
  explicit Scope(std::shared_ptr<Scope> parent) : parent_(std::move(parent)) {}
  const Value* find(std::string_view name) const;
  void set(const std::string& name, Value value);

 private:
  std::shared_ptr<Scope> parent_;
  std::vector<std::pair<std::string, Value>> names_;
};

class Evaluator {
 public:
  /// Enters a new scope while it lives.
  class ScopeGuard {
   public:
    ScopeGuard(Evaluator& evaluator, std::shared_ptr<Scope> parent)
        : evaluator_(evaluator), previous_(evaluator.scope_) {
      evaluator.scope_ = std::make_shared<Scope>(std::move(parent));
    }
    explicit ScopeGuard(Evaluator& evaluator) : ScopeGuard(evaluator, evaluator.scope_) {}
    ~ScopeGuard() { evaluator_.scope_ = previous_; }
    ScopeGuard(const ScopeGuard&) = delete;

   private:
    Evaluator& evaluator_;
    std::shared_ptr<Scope> previous_;
  };

  Evaluator(Runtime& runtime, std::shared_ptr<Scope> scope)
      : runtime_(runtime), scope_(std::move(scope)) {}

  const std::shared_ptr<Scope>& scope() const { return scope_; }
  Value evaluate(const Expr& expr);
  /// `caller`: the body of a call block, or nullptr.
  Value evaluate_call(const Expr& expr, const Value* caller = nullptr);
  /// `start`: the value of a filter chain without a first operand (filter blocks), or nullptr.
  Value evaluate_filter(const Expr& expr, const Value* start);

 private:
  Value evaluate_list(const Expr& expr, List::Kind kind);
  Value evaluate_dict(const Expr& expr);
  Value evaluate_compare(const Expr& expr);
  Value evaluate_subscript(const Expr& expr);
  Value evaluate_operator(const Expr& expr);
  Value name(const std::string& text);
  Arguments evaluate_arguments(const Expr& expr);

  Runtime& runtime_;
  std::shared_ptr<Scope> scope_;
};

}  // namespace troupe::engine::jinja
