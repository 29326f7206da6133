#include "launch/tools/migration/shell/run.h"

#include <utility>

#include "launch/tools/migration/shell/parser.h"
#include "launch/tools/migration/shell/runner.h"

namespace troupe::launch::tools::migration::shell {

std::vector<ScriptCommand> commands_of_script(std::string_view text, const ScriptCall& call) {
  const NodePointer script = parse_script(text);
  Runner runner(call);
  runner.run(*script);
  return std::move(runner.commands);
}

}  // namespace troupe::launch::tools::migration::shell
