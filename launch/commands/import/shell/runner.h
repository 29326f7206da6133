// The state of an evaluation, for run.cpp and builtins.cpp.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/commands/import/shell/condition.h"
#include "launch/commands/import/shell/expand.h"
#include "launch/commands/import/shell/run.h"
#include "launch/commands/import/shell/syntax.h"

namespace troupe::launch::shell {

class Runner {
 public:
  explicit Runner(const ScriptCall& call);

  Status run(const Node& node);
  std::vector<ScriptCommand> commands;

 private:
  enum class Flow { normal, loop_break, loop_continue, function_return, script_exit };

  Status sequence(const Node& node);
  Status and_or(const Node& node);
  Status pipeline(const Node& node);
  Status if_then(const Node& node);
  Status case_of(const Node& node);
  Status for_each(const Node& node);
  Status for_arithmetic(const Node& node);
  Status while_loop(const Node& node);
  Status simple(const Node& node);
  Status call(const Node& function, std::vector<Field> words);
  Status program(std::vector<Field> words, std::size_t line);
  Status arithmetic(const Word& expression);

  /// True if the loop ends.
  bool loop_ends();
  /// Runs in an environment of its own.
  Status apart(const Node& node);
  Status text_apart(const std::string& text, std::size_t line);
  /// What may run: what it assigns is unknown afterwards. `certain`: its programs are started.
  Status maybe(const Node& node, const std::string& why, bool certain = false);

  void assign(const Assignment& assignment, bool associative = false);
  void assign_array(const Assignment& assignment, bool associative);

  /// A builtin command by its name; nullopt for another name.
  std::optional<Status> builtin(const std::string& name, const Node& node,
                                const std::vector<Field>& words);
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

  Budget budget_;
  State state_;
  Expander expander_;
  std::map<std::string, NodePointer> functions_;
  Flow flow_ = Flow::normal;
  std::string uncertain_;
  int depth_ = 0;
};

}  // namespace troupe::launch::shell
