// The builtin commands of bash that have an effect on values, and assignments.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/tools/migration/shell/condition.h"
#include "launch/tools/migration/shell/expand.h"
#include "launch/tools/migration/shell/run.h"
#include "launch/tools/migration/shell/syntax.h"

namespace troupe::launch::tools::migration::shell {

class Builtins {
 public:
  explicit Builtins(const ScriptCall& call);
  virtual ~Builtins() = default;
  Builtins(const Builtins&) = delete;
  Builtins& operator=(const Builtins&) = delete;

 protected:
  enum class Flow { normal, loop_break, loop_continue, function_return, script_exit };

  void assign(const Assignment& assignment, bool associative = false);
  /// A builtin command by its name; nullopt for another name.
  std::optional<Status> builtin(const std::string& name, const Node& node,
                                const std::vector<Field>& words);
  /// What `command`, `exec` and `eval` do.
  virtual Status program(std::vector<Field> words, std::size_t line) = 0;
  virtual Status run_text(const std::string& text, std::size_t line) = 0;
  Status arithmetic(const Word& expression);

  Budget budget_;
  ShellState state_;
  Expander expander_;
  Flow flow_ = Flow::normal;

 private:
  void assign_array(const Assignment& assignment, bool associative);

  std::optional<Status> variables_builtin(const std::string& name, const Node& node,
                                          const std::vector<Field>& words);
  void declare(const Node& node);
  void unset(const std::vector<Field>& words);
  void shift(const std::vector<Field>& words);
  void set(const std::vector<Field>& words);
  void read(const Node& node, const std::vector<Field>& words);
  void change_directory(const std::vector<Field>& words);
  void source(const std::vector<Field>& words, std::size_t line);
  Status evaluate(const std::vector<Field>& words, std::size_t line);
  void leave(const std::string& name);
};

}  // namespace troupe::launch::tools::migration::shell
