#include "launch/commands/profile_options.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "engine/base/text.h"

namespace troupe::launch {

void add_profile(CLI::App& command, Sources& sources) {
  const auto set = [&sources](const std::string& key, const std::string& value) {
    sources.sets.push_back(cat("profile.", key, "=", value));
  };
  const auto flag = [&](const char* option, const char* key, const char* help) {
    command.add_flag_callback(
        option, [set, key] { set(key, "true"); }, help);
  };
  const auto value = [&](const char* option, const char* key, const char* help) {
    return command.add_option_function<std::string>(
        option, [set, key](const std::string& given) { set(key, given); }, help);
  };
  flag("--profile", "enabled",
       "write a trace and a table of operators (profile.*: docs/operations.md)");
  value("--profile-step-start", "step_start", "first step that is profiled");
  value("--profile-step-end", "step_end", "the step after the last");
  command.add_option_function<std::vector<std::string>>(
      "--profile-ranks",
      [set](const std::vector<std::string>& ranks) {
        set("ranks", cat("[", join(ranks, ", "), "]"));
      },
      "ranks that are profiled; -1: all");
  value("--profile-level", "level",
        "level0: operators; level1: and communication; level2: and hardware counters");
  flag("--profile-with-cpu", "with_cpu", "how many cores were busy");
  flag("--profile-with-stack", "with_stack", "the phases around each operator");
  flag("--profile-with-memory", "with_memory", "bytes of all tensors over time");
  flag("--profile-record-shapes", "record_shapes", "the shapes of each operator's operands");
  value("--profile-save-path", "save_path", "folder of the files");
}

}  // namespace troupe::launch
