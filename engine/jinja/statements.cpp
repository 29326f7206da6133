// Machine: statements, loops and macros.
#include <algorithm>

#include "engine/base/text.h"
#include "engine/base/utf8.h"
#include "engine/jinja/loop.h"
#include "engine/jinja/machine.h"
#include "engine/jinja/machine_depth.h"

namespace troupe::engine::jinja {

/// Text goes here for as long as it lives.
class Machine::Capture {
 public:
  explicit Capture(Machine& machine) : machine_(machine), before_(machine.out_) {
    machine.out_ = &text;
  }
  ~Capture() { machine_.out_ = before_; }
  Capture(const Capture&) = delete;
  std::string text;

 private:
  Machine& machine_;
  std::string* before_;
};

std::string Machine::captured(const Block& block) {
  Capture capture(*this);
  execute(block);
  return std::move(capture.text);
}

Machine::Flow Machine::execute(const Block& block) {
  for (const auto& statement : block)
    if (const Flow flow = execute(*statement); flow != Flow::normal) return flow;
  return Flow::normal;
}

// The innermost statement tells its line.
Machine::Flow Machine::execute(const Stmt& statement) {
  try {
    charge(1);
    const Depth depth(*this);
    return execute_kind(statement);
  } catch (const Failure& failure) {
    if (std::exchange(located_, true)) throw;
    throw Failure({failure.error().code, cat("line ", statement.line, ": ", failure.error().what)});
  }
}

Machine::Flow Machine::execute_kind(const Stmt& statement) {
  using Kind = Stmt::Kind;
  switch (statement.kind) {
    case Kind::text:
      write(statement.text);
      break;
    case Kind::print:
      write(text(evaluate(*statement.expr)));
      break;
    case Kind::if_:
      return execute_if(statement);
    case Kind::for_:
      return execute_for(statement, evaluate(*statement.expr), 1);
    case Kind::set:
    case Kind::set_block:
      execute_set(statement);
      break;
    case Kind::with:
      return execute_with(statement);
    case Kind::macro:
      scope_->set(statement.text, make_macro(statement));
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

Machine::Flow Machine::execute_if(const Stmt& statement) {
  const Stmt* branch = &statement;
  while (!evaluate(*branch->expr).truth()) {
    const bool chain =
        branch->otherwise.size() == 1 && branch->otherwise[0]->kind == Stmt::Kind::if_;
    if (!chain) return execute(branch->otherwise);
    branch = branch->otherwise[0].get();
  }
  return execute(branch->body);
}

std::vector<Value> Machine::filtered_items(const Stmt& loop, const Value& through) {
  std::vector<Value> items = items_of(through);
  if (!loop.condition) return items;
  std::vector<Value> out;
  for (Value& item : items) {
    const Enter enter(*this);
    assign(*loop.target, item);
    if (evaluate(*loop.condition).truth()) out.push_back(std::move(item));
  }
  return out;
}

Machine::Flow Machine::execute_for(const Stmt& statement, const Value& through, int depth) {
  auto loop = std::make_shared<Loop>(filtered_items(statement, through), depth);
  if (statement.recursive) {
    loop->recurse = [this, &statement, depth](const Value& inner) {
      const Depth guard(*this);
      Capture capture(*this);
      execute_for(statement, inner, depth + 1);
      return std::move(capture.text);
    };
  }
  bool finished = false;  // a pass, without break or continue: that is when jinja2 forgets the else
  for (loop->index = 0; loop->index < loop->items.size(); ++loop->index) {
    charge(1);
    const Enter enter(*this);
    scope_->set("loop", Value(std::shared_ptr<Object>(loop)));
    assign(*statement.target, loop->items[loop->index]);
    const Flow flow = execute(statement.body);
    if (flow == Flow::break_) break;
    finished |= flow == Flow::normal;
  }
  loop->recurse = nullptr;
  if (finished) return Flow::normal;
  const Enter enter(*this);
  return execute(statement.otherwise);
}

void Machine::assign(const Expr& target, const Value& value) {
  if (target.kind == Expr::Kind::name) return scope_->set(target.text, value);
  if (target.kind == Expr::Kind::attribute) {
    const Value space = evaluate(*target.parts[0]);
    auto* found =
        space.is(Value::Type::object) ? dynamic_cast<Namespace*>(space.object().get()) : nullptr;
    if (!found) raise("cannot assign attribute on non-namespace object");
    charge(found->values.items.size());
    return found->values.set(target.text, value);
  }
  const std::vector<Value> items = items_of(value);
  if (value.is(Value::Type::undefined)) raise(value.reason());
  if (items.size() != target.parts.size())
    raise(items.size() > target.parts.size()
              ? cat("too many values to unpack (expected ", target.parts.size(), ")")
              : cat("not enough values to unpack (expected ", target.parts.size(), ", got ",
                    items.size(), ")"));
  for (std::size_t i = 0; i < items.size(); ++i) assign(*target.parts[i], items[i]);
}

void Machine::execute_set(const Stmt& statement) {
  if (statement.kind == Stmt::Kind::set)
    return assign(*statement.target, evaluate(*statement.expr));
  Value body;
  {
    const Enter enter(*this);
    body = captured(statement.body);
    if (statement.expr) body = evaluate_filter(*statement.expr, &body);
  }
  assign(*statement.target, body);
}

Machine::Flow Machine::execute_with(const Stmt& statement) {
  std::vector<Value> values;
  for (const auto& [target, expr] : statement.assignments) values.push_back(evaluate(*expr));
  const Enter enter(*this);
  for (std::size_t i = 0; i < values.size(); ++i)
    assign(*statement.assignments[i].first, values[i]);
  return execute(statement.body);
}

void Machine::execute_filter(const Stmt& statement) {
  const Enter enter(*this);
  const Value body = captured(statement.body);
  write(to_text(evaluate_filter(*statement.expr, &body), "what a filter block gives"));
}

void Machine::execute_call(const Stmt& statement) {
  Value caller = make_macro(statement);
  write(to_text(evaluate_call(*statement.expr, &caller), "what a call block gives"));
}

void Machine::execute_generation(const Stmt& statement) {
  counted_characters_ += count_code_points(std::string_view(output_).substr(counted_bytes_));
  counted_bytes_ = output_.size();
  const std::size_t begin = counted_characters_;
  const Enter enter(*this);
  const std::string body = captured(statement.body);
  generations_.emplace_back(begin, begin + count_code_points(body));
  write(body);
}

}  // namespace troupe::engine::jinja
