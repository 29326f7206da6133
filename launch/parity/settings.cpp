#include "launch/parity/settings.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "launch/config/schema.h"

namespace troupe::launch::parity {
namespace {

/// Whether the values of a text depend on a key: the grid, and how its tokens are sampled. Their
/// number is an option.
bool has_effect(std::string_view key) {
  if (key.starts_with("parallel.")) return true;
  bool found = false;
  const engine::generate::SamplingParams params;
  engine::generate::SamplingParams::each_field(params, [&](const char* name, const auto&...) {
    found = found || (key == cat("rollout.", name) && key != "rollout.max_new_tokens");
  });
  return found;
}

Result<> apply(const std::string& set, config::RunConfig& config) {
  const auto equals = set.find('=');
  const std::string key = set.substr(0, equals);
  if (equals == std::string::npos || !(key.starts_with("rollout.") || key.starts_with("parallel.")))
    return fail(Errc::usage, cat("--set ", quote(set),
                                 ": expected KEY=VALUE with a key of rollout.* or parallel.*"));
  const config::Field* field = config::find_field(key);
  if (field == nullptr) {
    const std::string near = config::nearest_key(key);
    return fail(Errc::usage, cat("--set: unknown key ", quote(key),
                                 near.empty() ? "" : cat("; the nearest one is ", near)));
  }
  if (!has_effect(key))
    return fail(
        Errc::usage,
        cat("--set: ", key, " has no effect here: expected a key of parallel.* ",
            "or a sampling parameter of rollout.*; --max-new-tokens is the ", "number of tokens"));
  const auto value = config::parse_yaml(set.substr(equals + 1), cat("--set ", key));
  RETURN_IF_ERROR(value);
  if (const std::string why = config::assign(*field, *value, config); !why.empty())
    return fail(Errc::usage, cat("--set ", key, ": ", why));
  std::string outside;
  config::each_number_out_of_range(config, [&](const config::Field& other, double, bool) {
    if (&other == field) outside = config::allowed_text(other);
  });
  if (!outside.empty()) return fail(Errc::usage, cat("--set ", set, ": expected ", outside));
  return {};
}

Result<std::vector<const Path*>> chosen(const std::vector<std::string>& names) {
  std::vector<const Path*> out;
  for (const Path& each : paths())
    if (names.empty() || &each == &paths().front() ||
        std::ranges::find(names, each.name) != names.end())
      out.push_back(&each);
  std::vector<std::string> known;
  for (const Path& each : paths()) known.emplace_back(each.name);
  for (const std::string& name : names)
    if (find_path(name) == nullptr)
      return fail(Errc::usage,
                  cat("--paths: unknown path ", quote(name), "; known: ", join(known, ", ")));
  return out;
}

}  // namespace

bool Settings::trains() const {
  return std::ranges::any_of(paths, &Path::trains);
}

Result<Settings> settings_of(const ParityOptions& options) {
  Settings out{options, {}, {}};
  for (const std::string& set : options.sets) RETURN_IF_ERROR(apply(set, out.config));
  out.config.rollout.sampling.max_new_tokens = options.max_new_tokens;
  out.config.rollout.sampling.ignore_eos = true;
  auto paths = chosen(options.paths);
  RETURN_IF_ERROR(paths);
  out.paths = std::move(*paths);
  if (out.grid().dp > 1)
    return fail(Errc::usage, cat("parallel.dp is ", out.grid().dp,
                                 ": expected 1; replicas compute the same values each for its part "
                                 "of the texts"));
  return out;
}

}  // namespace troupe::launch::parity
