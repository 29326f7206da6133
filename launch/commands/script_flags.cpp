#include "launch/commands/script_flags.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "engine/base/text/text.h"
#include "launch/commands/arguments.h"
#include "launch/tools/tables/flag_classes.h"

namespace troupe::launch::commands {

void add_script_flags(CLI::App& command) {
  using namespace tools::tables;
  constexpr int many = 1 << 20;
  for (const MegatronFlag& flag : megatron_flags()) {
    const std::string name = cat("--", flag.name);
    if (class_of(flag) == FlagClass::acts || command.get_option_no_throw(name)) continue;
    const auto take = [&command, &flag](const std::vector<std::string>& values) {
      if (const auto problem = problem_of(flag, values); !problem.empty())
        throw ArgumentProblem(cat(command.get_name(), ": ", problem));
    };
    if (flag.count == "0") {
      command.add_flag_function(name, [take](std::int64_t) { take({}); })->group("");
      continue;
    }
    const bool open = flag.count == "+" || flag.count == "*";
    const int least = flag.count == "*" ? 0 : open ? 1 : flag.count[0] - '0';
    command
        .add_option_function<std::vector<std::string>>(
            name,
            [take](const auto& words) {
              take(words == std::vector<std::string>{""} ? std::vector<std::string>{} : words);
            })
        ->expected(least, open ? many : least)
        ->group("");
  }
}

}  // namespace troupe::launch::commands
