#include "launch/commands/script_names.h"

#include <array>
#include <string_view>

namespace troupe::launch::commands {
namespace {

struct Script {
  std::string_view name, command, option;  ///< option: an argument that the script implies, or ""
};
// launch/CMakeLists.txt makes the links of these names.
constexpr std::array<Script, 7> scripts{{{"preprocess_data", "preprocess", ""},
                                         {"convert_ckpt", "convert", ""},
                                         {"convert_ckpt_v2", "convert", "--use-mcore-models"},
                                         {"inference", "inference", ""},
                                         {"evaluation", "evaluation", ""},
                                         {"pretrain_gpt", "pretrain_gpt", ""},
                                         {"posttrain_gpt", "posttrain_gpt", ""}}};

}  // namespace

std::vector<std::string> command_words(int argc, const char* const* argv) {
  std::vector<std::string> out;
  if (argc < 1) return out;
  const std::string_view path = argv[0];
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (name.ends_with(".py")) name.remove_suffix(3);
  for (const Script& script : scripts) {
    if (name != script.name) continue;
    out.emplace_back(script.command);
    if (!script.option.empty()) out.emplace_back(script.option);
  }
  out.insert(out.end(), argv + 1, argv + argc);
  return out;
}

}  // namespace troupe::launch::commands
