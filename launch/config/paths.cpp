#include "launch/config/paths.h"

#include <cstdlib>

#include "engine/base/text/text.h"

namespace troupe::launch::config {

Result<std::string> expand_home(std::string_view name, const std::string& path) {
  if (!path.starts_with('~')) return path;
  if (path.size() > 1 && path[1] != '/')
    return fail(Errc::usage, cat(name, " = ", quote(path, 400),
                                 ": only ~ and ~/ are expanded; write the home directory of the "
                                 "user in full, or ./~NAME "
                                 "for a file of that name"));
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home != '/')
    return fail(Errc::usage,
                cat(name, " = ", quote(path, 400),
                    ": ~ is the directory that HOME names, and HOME is not set to an absolute "
                    "path; write the path in full"));
  return home + path.substr(1);
}

std::vector<std::string> expand_home(RunConfig& config) {
  std::vector<std::string> problems;
  const auto expand = [&](std::string_view key, std::string& path) {
    auto expanded = expand_home(key, path);
    if (expanded)
      path = std::move(*expanded);
    else
      problems.push_back(expanded.error().what);
  };
  each_path(config, expand);
  // Those of the rule python; the function is more than a path.
  for (RewardRule& rule : config.reward)
    for (const char* key : {"function", "python"}) {
      const Json* given = rule.options.find(key);
      if (rule.rule != "python" || !given || !given->is_string()) continue;
      std::string path = given->string();
      expand(cat("reward.", key), path);
      rule.options.set(key, std::move(path));
    }
  return problems;
}

}  // namespace troupe::launch::config
