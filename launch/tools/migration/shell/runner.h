// The commands of a script: conditions, loops, functions, and the programs it starts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/tools/migration/shell/builtins.h"
#include "launch/tools/migration/shell/run.h"
#include "launch/tools/migration/shell/syntax.h"

namespace troupe::launch::tools::migration::shell {

class Runner : public Builtins {
 public:
  explicit Runner(const ScriptCall& call);

  Status run(const Node& node);
  std::vector<ScriptCommand> commands;

 private:
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
  Status program(std::vector<Field> words, std::size_t line) override;
  Status run_text(const std::string& text, std::size_t line) override;

  /// True if the loop ends.
  bool loop_ends();
  /// Runs in an environment of its own.
  Status in_subshell(const Node& node);
  Status text_in_subshell(const std::string& text, std::size_t line);
  /// What may run: what it assigns is unknown afterwards. `certain`: its programs are started.
  Status maybe(const Node& node, const std::string& why, bool certain = false);

  std::map<std::string, NodePointer> functions_;
  std::string uncertain_;
  int depth_ = 0;
};

}  // namespace troupe::launch::tools::migration::shell
