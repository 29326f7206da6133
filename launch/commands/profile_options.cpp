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
  value("--profile-step-start", "step_start", "first profiled step");
  value("--profile-step-end", "step_end", "end of the profiled steps (exclusive)");
  command.add_option_function<std::vector<std::string>>(
      "--profile-ranks",
      [set](const std::vector<std::string>& ranks) {
        set("ranks", cat("[", join(ranks, ", "), "]"));
      },
      "profiled ranks of each group; -1: all");
  value("--profile-level", "level",
        "level0: operators; level1: also communication; level2: also hardware counters");
  flag("--profile-with-cpu", "with_cpu", "record the number of busy cores");
  flag("--profile-with-stack", "with_stack", "record the enclosing phases of each operator");
  flag("--profile-with-memory", "with_memory", "record tensor memory over time");
  flag("--profile-record-shapes", "record_shapes", "record the operand shapes of each operator");
  value("--profile-save-path", "save_path", "output folder; default: profile in the run's output");
}

}  // namespace troupe::launch
