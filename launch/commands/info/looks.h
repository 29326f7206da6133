// One look for each kind of thing that `troupe info` knows. Each begins its own part of the report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/commands/info/report.h"

namespace troupe::launch {

/// A model folder: architecture, sizes, weights against their index and against config.json,
/// memory, generation_config.json.
void look_at_model(const std::string& folder, Report& report);
/// A folder, or a file of a tokenizer. `vocabulary` is the model's, 0: there is none, and the
/// tokenizer is what this is about.
void look_at_tokenizer(const std::string& path, std::int64_t vocabulary, Report& report);
/// A chat template that stands in a folder, or is a file.
void look_at_template(const std::string& path, Report& report);
void look_at_adapter(const std::string& folder, Report& report);
/// A run's output directory; a checkpoint of one.
void look_at_run(const std::string& folder, Report& report);
void look_at_checkpoint(const std::string& folder, Report& report);
/// A data file, a folder of them, or a pattern. `column_names`: of tables without a header.
void look_at_data(const std::string& path, const std::vector<std::string>& column_names,
                  Report& report);
/// A run file (YAML) with the keys of docs/configuration.md.
void look_at_run_file(const std::string& path, Report& report);

}  // namespace troupe::launch
