#include "launch/commands/status.h"

#include <cstdio>
#include <filesystem>
#include <optional>

#include "engine/base/text/text.h"
#include "launch/commands/info/run_state.h"
#include "launch/run/group_status.h"

namespace troupe::launch::commands {
using run::RunStatus;

int status(const StatusOptions& options) {
  std::error_code ignored;
  if (!std::filesystem::exists(options.run + "/config.yaml", ignored))
    throw Failure({Errc::not_found, cat(quote(options.run),
                                        ": expected the output directory of a "
                                        "run, found no config.yaml in it")});
  const RunState state = read_run_state(options.run);
  std::optional<RunStatus> groups;
  if (state.state == Progressed::running) groups = value_or_throw(run::read_status(options.run));
  if (groups && state.process > 0 && groups->process != state.process) groups.reset();
  if (options.json) {
    Json out = Json::Object{{"state", std::string(name_of(state.state))},
                            {"process", state.process},
                            {"step", state.step},
                            {"total_steps", state.steps}};
    if (groups) out.set("status", run::to_json(*groups));
    std::fputs((out.dump() + "\n").c_str(), stdout);
    return 0;
  }
  std::string text = cat(name_of(state.state), ": step ", state.step);
  if (state.steps > 0) text += cat(" of ", state.steps);
  if (state.process > 0) text += cat(", process ", state.process);
  text += "\n";
  if (groups) text += run::status_table(*groups);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace troupe::launch::commands
