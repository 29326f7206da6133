// Interpreter: executes the statements of a template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/jinja/evaluator.h"

namespace troupe::engine::jinja {

class Interpreter {
 public:
  explicit Interpreter(RuntimeLimits limits = {});
  Interpreter(const Interpreter&) = delete;

  void define(const std::string& name, Value value) { globals_->set(name, std::move(value)); }
  /// Renders the template. Throws Failure.
  std::string run(const Block& block);
  /// Half-open ranges of the output, in code points, that the generation blocks wrote.
  const std::vector<std::pair<std::size_t, std::size_t>>& generations() const {
    return generations_;
  }

 private:
  enum class Flow { normal, break_, continue_ };
  class Macro;
  class Capture;

  Flow execute(const Block& block);
  Flow execute(const Stmt& statement);
  Flow execute_kind(const Stmt& statement);
  Flow execute_if(const Stmt& statement);
  Flow execute_for(const Stmt& statement, const Value& iterable, int depth);
  void execute_set(const Stmt& statement);
  Flow execute_with(const Stmt& statement);
  void execute_filter(const Stmt& statement);
  void execute_call(const Stmt& statement);
  void execute_generation(const Stmt& statement);
  void assign(const Expr& target, const Value& value);
  void write(const std::string& text);
  std::string captured(const Block& block);
  std::vector<Value> filtered_items(const Stmt& loop, const Value& iterable);
  Value make_macro(const Stmt& statement);

  Runtime runtime_;
  std::shared_ptr<Scope> globals_;
  Evaluator evaluator_;
  bool located_ = false;  // the failure being propagated already names its line
  std::string output_;    // of the template
  std::string* out_;      // where text is written: output_, or the capture of a macro or block
  std::vector<std::pair<std::size_t, std::size_t>> generations_;
  // Bytes and code points of output_ counted so far, so that ranges need one pass.
  std::size_t counted_bytes_ = 0, counted_characters_ = 0;
  std::vector<std::shared_ptr<Scope>> macro_scopes_;  // owned here; macros hold weak references
};

}  // namespace troupe::engine::jinja
