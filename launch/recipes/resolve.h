// resolve: defaults < presets (launch/recipes) < file < options and --set, with the origin of
// every value. All problems are reported at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "launch/config/run_config.h"

namespace troupe::launch::recipes {

/// A setting that an option of its own gives: "--model DIR" is {"--model", "model", "DIR"}.
struct OptionSetting {
  std::string option;
  std::string key, value;
};

struct Sources {
  std::string algorithm;                    ///< of --algorithm; empty: not given
  std::string file;                         ///< of --config; "-": standard input; empty: none
  std::vector<std::string> sets;            ///< "key=value", in order; later ones win
  bool check_files = true;                  ///< also check that the model and the data exist
  std::vector<OptionSetting> options = {};  ///< in order; the same key must not be in `sets`
};

struct Resolved {
  config::RunConfig config;
  config::Origins origins;
  std::vector<std::string> warnings;  ///< allowed, but probably not intended
};

/// Errc::usage with every problem on a line of its own: unknown keys (and the nearest known one),
/// wrong types, values out of range (and the nearest valid one), required keys that are missing,
/// combinations that contradict themselves, files that are not there. Errc::not_found if missing
/// files are the only problem. Paths that begin with ~ are expanded.
Result<Resolved> resolve(const Sources& sources);

/// Every setting that the run uses as a YAML file that resolves to the same values again, without
/// warnings of unused keys. `config` is valid.
std::string to_yaml(const config::RunConfig& config);
/// The configuration that to_yaml() wrote. Errc::usage as resolve(); `where` starts the messages.
Result<config::RunConfig> config_of(std::string_view yaml, const std::string& where);

}  // namespace troupe::launch::recipes
