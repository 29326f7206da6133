#include "launch/tools/migration/import.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "engine/base/files/file.h"
#include "engine/base/text/shell_word.h"
#include "engine/base/text/text.h"
#include "launch/config/schema.h"
#include "launch/recipes/presets.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/resolve.h"
#include "launch/run/exit_code.h"
#include "launch/tools/migration/conversion.h"
#include "launch/tools/migration/programs.h"
#include "launch/tools/migration/report.h"
#include "launch/tools/tables/page.h"

namespace troupe::launch::tools::migration {
namespace {

/// Whether a run can start from an imported run file.
struct CheckedFile {
  std::string text;     ///< the run file
  std::string problem;  ///< why `troupe train` refuses it, in one line; empty: it does not
};

bool in_key(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/// True if `line` begins with the key, after the place that the reader names.
bool is_about(std::string_view line, std::string_view key) {
  const auto at = line.find(key);
  if (at == line.npos) return false;
  const bool ends = at + key.size() == line.size() || !in_key(line[at + key.size()]);
  return ends && (at == 0 || !in_key(line[at - 1]));
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

/// Changes one value that the reader's answer is about. False if there is none to change.
bool clear_value(Converted& converted, tables::Tool tool, const std::string& problem) {
  const recipes::Recipe* recipe = recipes::find_recipe(converted.algorithm);
  const recipes::Preset* defaults =
      recipe ? recipes::find_compat(name_of(tool), recipe->name) : nullptr;
  const std::string reason = one_line(problem);
  if (defaults && converted.values.contains("compat"))
    for (const auto& each : defaults->values) {
      const std::string key(each.first);
      if (converted.values.contains(key) || !is_about(problem, key)) continue;
      const config::Field* field = config::find_field(key);
      if (!field) continue;
      const std::string from = cat(tables::title_of(tool), "'s default ", each.second);
      converted.values[key] = {config::value_text(*field, config::RunConfig()),
                               from + ", which the method excludes"};
      converted.lines.push_back({Outcome::not_needed, from, cat(key, " is off: ", reason)});
      return true;
    }
  for (const auto& [key, value] : converted.values) {
    if (!key.starts_with("parallel.") || !is_about(problem, key)) continue;
    converted.lines.push_back(
        {Outcome::no_equivalent, value.from,
         cat(key, ": ", value.yaml, " is left out; it does not change results: ", reason)});
    converted.values.erase(key);
    return true;
  }
  return false;
}

/// The run file of `converted`, as run_file() writes it, read by the reader of `troupe train`
/// without looking for its model and data. A default of the tool (compat) that the method excludes
/// is set to ours, and a layout that the run excludes is left out; the report has a line for each.
CheckedFile checked_run_file(Converted& converted, tables::Tool tool, const std::string& source) {
  constexpr int rounds = 32;  // one value each
  CheckedFile out;
  for (int round = 0; round < rounds; ++round) {
    out.text = run_file(converted, tool, source);
    const auto config = recipes::config_of(out.text, "the run file");
    out.problem = config ? "" : config.error().what;
    if (config || !clear_value(converted, tool, out.problem)) break;
  }
  out.problem = one_line(std::move(out.problem));
  return out;
}

tables::Tool tool_named(const std::string& name) {
  for (const tables::Tool tool : tables::all_tools)
    if (name == name_of(tool)) return tool;
  std::vector<std::string> names;
  for (const tables::Tool tool : tables::all_tools) names.emplace_back(name_of(tool));
  throw Failure({Errc::usage, cat("--tool ", name, ": must be one of ", join(names, ", "))});
}

/// The tool that knows most of the settings.
tables::Tool detect(const ForeignRun& run) {
  std::array<std::size_t, tables::all_tools.size()> known{};
  for (const tables::Tool tool : tables::all_tools)
    for (const ForeignSetting& each : run.settings)
      known[static_cast<std::size_t>(tool)] += !rows_of(tool, each.key).empty();
  const std::size_t most = *std::ranges::max_element(known);
  std::vector<std::string> candidates;
  for (const tables::Tool tool : tables::all_tools)
    if (known[static_cast<std::size_t>(tool)] == most) candidates.emplace_back(name_of(tool));
  if (most == 0)
    throw Failure({Errc::usage,
                   "no setting here is one of TRL, LLaMA-Factory, verl, OpenRLHF or "
                   "MindSpeed; give --tool"});
  if (most * 2 < run.settings.size())
    throw Failure({Errc::unsupported,
                   cat("only ", most, " of the ", run.settings.size(), " settings are known of ",
                       join(candidates, " or "),
                       ": this is a file of another tool, which is not supported, unless --tool "
                       "says otherwise")});
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
    if (later.insert(tables::normal_name(at->key)).second) kept.push_back(std::move(*at));
  settings.assign(std::move_iterator(kept.rbegin()), std::move_iterator(kept.rend()));
}

std::map<std::string, std::string> environment_of(const std::vector<std::string>& pairs) {
  std::map<std::string, std::string> out;
  for (const std::string& pair : pairs) {
    const auto equals = pair.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Failure({Errc::usage, cat("--env: expected NAME=VALUE, found ", quote(pair))});
    out[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return out;
}

ForeignRun read_input(const ImportOptions& options) {
  if (options.words.empty())
    throw Failure({Errc::usage, "import: expected a file, or `--` and a command line"});
  const std::string& first = options.words[0];
  if (options.words.size() > 1 && !is_file(first))
    return value_or_throw(read_foreign_words(options.words, "the command line"));
  const std::vector<std::string> rest(options.words.begin() + 1, options.words.end());
  ForeignRun run =
      value_or_throw(read_foreign_file(first, {rest, environment_of(options.environment)}));
  add_overrides(rest, run);
  // Other words are a script's arguments.
  if (first.ends_with(".sh"))
    std::erase_if(run.unread, [&](const std::string& word) {
      return std::ranges::find(rest, word) != rest.end();
    });
  if (const auto name = unsupported_tool(run); !name.empty() && !run.tool) refuse_tool(first, name);
  return run;
}

/// Files that belong to the run file are written beside it, and named by their paths.
std::map<std::string, std::string> files_beside(Converted& converted, const std::string& output) {
  std::map<std::string, std::string> out;
  for (const auto& [name, content] : converted.files) {
    const std::filesystem::path run(output);
    const std::string path =
        (run.parent_path() / cat(run.stem().string(), ".", name)).lexically_normal().string();
    for (auto& [key, value] : converted.values)
      if (value.yaml == config::yaml_text(name)) value.yaml = config::yaml_text(path);
    for (ReportLine& line : converted.lines)
      if (line.text.ends_with(": " + name)) line.text += cat(", written to ", path);
    out[path] = content;
  }
  return out;
}

/// Without --output there is no place for files.
void leave_out_files(Converted& converted) {
  for (const auto& [name, content] : converted.files) {
    std::erase_if(converted.values,
                  [&](const auto& each) { return each.second.yaml == config::yaml_text(name); });
    for (ReportLine& line : converted.lines)
      if (line.text.ends_with(": " + name))
        line = {Outcome::no_equivalent, line.setting,
                "it is a file of its own: give --output, and it is written beside the run file"};
  }
  converted.files.clear();
}

/// The line that ends the report if settings have this outcome: their names, the first reason, and
/// what to do. "" without one.
std::string left_out(const Converted& converted, Outcome outcome, std::string_view what,
                     std::string_view advice) {
  constexpr std::size_t most = 8;
  std::vector<std::string> names;
  std::string why;
  for (const ReportLine& line : converted.lines) {
    if (line.outcome != outcome) continue;
    if (why.empty()) why = line.text;
    names.push_back(line.setting.substr(0, line.setting.find(' ')));
  }
  if (names.empty()) return "";
  const std::size_t more = names.size() > most ? names.size() - most : 0;
  names.resize(names.size() - more);
  return cat("Not converted, as a value could not be ", what, ": ", join(names, ", "),
             more > 0 ? cat(" and ", more, " more") : "", " (", why, "); ", advice, "\n");
}

std::string not_evaluated(const Converted& converted) {
  return left_out(converted, Outcome::not_evaluated, "evaluated",
                  "give the variable that it comes from a value (--env NAME=VALUE), the script its "
                  "arguments, or write the key into the run file");
}

std::string not_used(const Converted& converted) {
  return left_out(converted, Outcome::unusable, "used",
                  "correct it, give another value after the file (NAME=VALUE), or write the key "
                  "into the run file");
}

/// The words of the command that a script starts.
int print_command(const ImportOptions& options) {
  if (options.words.empty() || !options.words[0].ends_with(".sh"))
    throw Failure({Errc::usage, "--command: expected a shell script (.sh)"});
  const std::vector<std::string> rest(options.words.begin() + 1, options.words.end());
  std::vector<std::string> notes, words;
  std::string unknown;
  const auto command = value_or_throw(
      command_of_script(options.words[0], {rest, environment_of(options.environment)}, notes));
  for (const shell::Field& word : command.words) {
    words.push_back(shell_word(word.value.text));
    if (unknown.empty() && !word.value.unknown.empty())
      unknown = cat(quote(word.value.text), " depends on ", word.value.unknown);
  }
  std::cout << join(words, " ") << std::endl;
  if (unknown.empty()) return 0;
  std::fputs(cat("Could not be evaluated: ", unknown, "\n").c_str(), stderr);
  return run::exit_code(Errc::bad_input);
}

void write_new(const std::string& path, const std::string& text) {
  if (std::filesystem::exists(path))
    throw Failure({Errc::usage, cat(path, " exists; choose another --output")});
  value_or_throw(write_file_durably(path, text));
}

/// What the report says of the command line beside its settings.
void add_notes(const ForeignRun& run, Converted& converted) {
  if (!run.launcher.empty())
    converted.notes.push_back(cat("not needed: ", run.launcher,
                                  "; troupe starts processes itself (troupe launch, mpirun)"));
  for (const std::string& word : run.unread)
    converted.notes.push_back(cat("not read: ", quote(word)));
  for (const std::string& note : run.notes) converted.notes.push_back(note);
}

}  // namespace

int import_run(const ImportOptions& options) {
  if (!options.table.empty()) {
    std::cout << tables::table_page(tool_named(options.table));
    return 0;
  }
  if (options.only_command) return print_command(options);
  ForeignRun run = read_input(options);
  keep_last(run.settings);
  resolve_references(run);
  if (options.devices > 0) run.devices = options.devices;
  const tables::Tool tool = !options.tool.empty() ? tool_named(options.tool)
                            : run.tool            ? *run.tool
                                                  : detect(run);
  Converted converted = value_or_throw(convert(run, tool, options.algorithm));
  const std::string& first = options.words[0];
  std::map<std::string, std::string> files;
  if (options.output.empty())
    leave_out_files(converted);
  else
    files = files_beside(converted, options.output);
  const CheckedFile file =
      checked_run_file(converted, tool, is_file(first) ? first : "a command line");
  add_notes(run, converted);
  if (options.output.empty())
    std::cout << file.text << std::flush;
  else
    write_new(options.output, file.text);
  for (const auto& [path, content] : files) write_new(path, content);
  const std::string incomplete =
      file.problem.empty() ? "" : cat("The run file is not complete: ", file.problem, "\n");
  const std::string unknown = not_evaluated(converted), unused = not_used(converted);
  const std::string report = import_report(converted, tool) + incomplete + unused + unknown;
  std::fputs(report.c_str(), stderr);
  if (!unknown.empty()) return run::exit_code(Errc::bad_input);
  return incomplete.empty() && unused.empty() ? 0 : run::exit_usage;
}

}  // namespace troupe::launch::tools::migration
