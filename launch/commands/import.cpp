#include "launch/commands/import.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <set>

#include "engine/base/file.h"
#include "engine/base/text.h"
#include "launch/commands/import/conversion.h"
#include "launch/commands/import/report.h"
#include "launch/config/resolve.h"
#include "launch/migration/page.h"

namespace troupe::launch {
namespace {

Tool tool_named(const std::string& name) {
  for (const Tool tool : all_tools)
    if (name == name_of(tool)) return tool;
  std::vector<std::string> names;
  for (const Tool tool : all_tools) names.emplace_back(name_of(tool));
  throw Failure({Errc::usage, cat("--tool ", name, ": must be one of ", join(names, ", "))});
}

/// The tool that knows most of the settings.
Tool detect(const ForeignRun& run) {
  std::array<std::size_t, all_tools.size()> known{};
  for (const Tool tool : all_tools)
    for (const ForeignSetting& each : run.settings)
      known[static_cast<std::size_t>(tool)] += !rows_of(tool, each.key).empty();
  const std::size_t most = *std::ranges::max_element(known);
  std::vector<std::string> candidates;
  for (const Tool tool : all_tools)
    if (known[static_cast<std::size_t>(tool)] == most) candidates.emplace_back(name_of(tool));
  if (most == 0)
    throw Failure({Errc::usage,
                   "no setting here is one of TRL, LLaMA-Factory, verl, OpenRLHF or "
                   "MindSpeed; give --tool"});
  if (candidates.size() > 1)
    throw Failure({Errc::usage,
                   cat("these settings could be of ", join(candidates, " or "), "; give --tool")});
  return tool_named(candidates[0]);
}

bool is_file(const std::string& word) {
  return word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json") ||
         word.ends_with(".sh");
}

/// A later setting of the same name replaces an earlier one.
void keep_last(std::vector<ForeignSetting>& settings) {
  std::set<std::string> later;
  std::vector<ForeignSetting> kept;
  for (auto at = settings.rbegin(); at != settings.rend(); ++at)
    if (later.insert(normal_name(at->key)).second) kept.push_back(std::move(*at));
  settings.assign(std::move_iterator(kept.rbegin()), std::move_iterator(kept.rend()));
}

ForeignRun read_input(const ImportOptions& options) {
  if (options.words.empty())
    throw Failure({Errc::usage, "import: expected a file, or `--` and a command line"});
  const std::string& first = options.words[0];
  if (options.words.size() > 1 && !is_file(first))
    return value_or_throw(read_foreign_words(options.words, "the command line"));
  ForeignRun run = value_or_throw(read_foreign_file(first));
  const std::vector<std::string> overrides(options.words.begin() + 1, options.words.end());
  add_overrides(overrides, run);
  return run;
}

/// What the run file still lacks, without its files.
std::string lacking(const std::string& text) {
  const auto config = config_of(text, "the run file");
  return config ? "" : cat("The run file is not complete: ", config.error().what, "\n");
}

}  // namespace

int import_run(const ImportOptions& options) {
  if (!options.table.empty()) {
    std::cout << table_page(tool_named(options.table));
    return 0;
  }
  ForeignRun run = read_input(options);
  keep_last(run.settings);
  resolve_references(run);
  if (options.devices > 0) run.devices = options.devices;
  const Tool tool = !options.tool.empty() ? tool_named(options.tool)
                    : run.tool            ? *run.tool
                                          : detect(run);
  Converted converted = value_or_throw(convert(run, tool, options.algorithm));
  const std::string& first = options.words[0];
  const std::string text = run_file(converted, tool, is_file(first) ? first : "a command line");
  if (!run.launcher.empty())
    converted.notes.push_back(cat("not needed: ", run.launcher,
                                  "; troupe starts processes itself (troupe launch, mpirun)"));
  for (const std::string& word : run.unread)
    converted.notes.push_back(cat("not read: ", quote(word)));
  if (options.output.empty())
    std::cout << text << std::flush;
  else if (std::filesystem::exists(options.output))
    throw Failure({Errc::usage, cat(options.output, " exists; choose another --output")});
  else
    value_or_throw(write_file_durably(options.output, text));
  const std::string report = import_report(converted, tool) + lacking(text);
  std::fputs(report.c_str(), stderr);
  return 0;
}

}  // namespace troupe::launch
