// Validation of a configuration as a whole: missing keys, values out of range, combinations that
// contradict each other, settings that have no effect.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/config/run_config.h"

namespace troupe::launch::recipes {

struct Findings {
  std::vector<std::string> problems;  ///< the run is refused
  std::size_t missing = 0;            ///< how many of the problems are missing files
  std::vector<std::string> warnings;
  std::set<std::string> reported;  ///< keys whose values are wrong in themselves
  std::set<std::string> unused;    ///< keys that are given and have no effect
};

/// A configuration under validation, and how its problems are reported. Each message states
/// the valid values.
class Validation final : public algorithms::SettingsReport {
 public:
  Validation(const config::RunConfig& validated, const config::Origins& origins, Findings& findings)
      : config(validated), origins_(origins), findings_(findings) {}

  const config::RunConfig& config;

  /// A text that begins with the name of a key is left out if its value is wrong in itself: what
  /// contradicts other settings then follows from that.
  void problem(std::string text) override;
  /// The value of a key is wrong in itself.
  void wrong_value(std::string_view key, std::string text);
  /// A file that a result misses counts as missing.
  template <class T>
  void check(const Result<T>& result) {
    const std::size_t before = findings_.problems.size();
    SettingsReport::check(result);
    if (!result && result.error().code == Errc::not_found)
      findings_.missing += findings_.problems.size() - before;
  }
  void warn(std::string text) override { findings_.warnings.push_back(std::move(text)); }
  std::string named(std::string_view key) const override;
  bool given(std::string_view key) const override;
  std::int64_t batch_size() const override { return config.train.batch_size; }
  bool streams() const override { return config.data.stream; }
  void unused(std::string_view key, std::string_view why) override;
  void unused(std::initializer_list<std::string_view> keys, std::string_view why) {
    for (const auto key : keys) unused(key, why);
  }
  /// The keys of a section except `but`.
  void unused_section(std::string_view section, std::string_view but, std::string_view why);

 private:
  const config::Origins& origins_;
  Findings& findings_;
};

void validate(const config::RunConfig& config, const config::Origins& origins, Findings& findings);
/// The keys that have no effect on a run of this configuration.
std::set<std::string> unused_keys(const config::RunConfig& config);
/// Checks that all models, adapters and files that the run reads exist.
void validate_files(const config::RunConfig& config, Findings& findings);

}  // namespace troupe::launch::recipes
