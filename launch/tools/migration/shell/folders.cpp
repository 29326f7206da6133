#include "launch/tools/migration/shell/expand.h"

#include <filesystem>

#include "launch/tools/migration/shell/scan.h"

namespace troupe::launch::tools::migration::shell {

std::optional<std::string> printed_folder(
    std::string_view command, const ShellState& state,
    const std::function<std::optional<std::string>(const std::string&)>& path) {
  std::string text(command);
  for (const std::string_view quiet : {" >/dev/null", " 2>&1", " 2>/dev/null", " &>/dev/null"})
    if (const auto at = text.find(quiet); at != std::string::npos) text.erase(at, quiet.size());
  while (!text.empty() && is_blank(text.back())) text.pop_back();
  const bool here = state.directory_unknown.empty();
  if (text == "pwd") return here ? std::optional(state.directory) : std::nullopt;
  constexpr std::string_view cd = "cd ", pwd = "&& pwd", dirname = "dirname ";
  const bool moves = text.starts_with(cd) && text.ends_with(pwd);
  if (!moves && !text.starts_with(dirname)) return std::nullopt;
  const std::string argument = moves ? text.substr(cd.size(), text.size() - cd.size() - pwd.size())
                                     : text.substr(dirname.size());
  // Within $(...), an operator outside of a substitution would be a further command.
  if (argument.find_first_of(";|&<>") != std::string::npos) return std::nullopt;
  const auto found = path(argument);
  if (!found) return std::nullopt;
  std::string plain = *found;
  while (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
  const std::filesystem::path given(plain);
  if (!moves) {
    const std::string parent = given.parent_path().string();
    return parent.empty() ? "." : parent;
  }
  if (!given.is_absolute() && !here) return std::nullopt;
  std::string there = (std::filesystem::path(state.directory) / given).lexically_normal().string();
  if (there.size() > 1 && there.ends_with('/')) there.pop_back();
  return there;
}

}  // namespace troupe::launch::tools::migration::shell
