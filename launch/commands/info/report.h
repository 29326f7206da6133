// Report: the findings of `troupe info`, printed as text or, with --json, as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"

namespace troupe::launch::commands {

class Report {
 public:
  /// Starts a section of the report: "model", "tokenizer", "data", ...
  void begin(const std::string& kind, const std::string& title);
  /// Adds a fact: `key` and `value` in JSON, `text` in the text.
  void say(const std::string& key, Json value, const std::string& text);
  /// Adds a fact to the JSON only, or a line to the text only.
  void fact(const std::string& key, Json value) {
    sections_.back().facts.set(key, std::move(value));
  }
  void line(const std::string& text) { sections_.back().lines.push_back(text); }
  /// Adds a note: something unusual that does not prevent use.
  void note(const std::string& text);
  /// Adds an error that prevents use. The first one determines the exit code.
  void problem(const Error& error);

  bool empty() const { return sections_.empty(); }
  /// Prints the report to stdout; returns the exit code.
  int finish(const std::string& path, bool as_json) const;

 private:
  struct Section {
    std::string kind, title;
    Json facts = Json::Object{};
    std::vector<std::string> lines, notes;
    std::vector<Error> problems;
  };
  void print() const;
  Json to_json(const std::string& path) const;

  std::vector<Section> sections_;
  int code_ = 0;
};

// Each of these functions adds sections to the report.

/// A tokenizer's folder or file. `vocabulary`: size of the model's vocabulary; 0 without a model.
void inspect_tokenizer(const std::string& path, std::int64_t vocabulary, Report& report);
/// A chat template, in a folder or as a file.
void inspect_template(const std::string& path, Report& report);
/// A model folder, with values in place of those of config.json (models/overrides.h): architecture,
/// sizes, weights against their index and against config.json, memory, generation_config.json.
void inspect_model(const std::string& folder, const Json& overrides, Report& report);
/// A config.json without its folder: whether this architecture with these settings can be used, its
/// sizes and memory.
void inspect_config(const std::string& path, const Json& overrides, Report& report);
/// A data file, a folder of data files, or a pattern. `column_names`: for tables without a header.
void inspect_data(const std::string& path, const std::vector<std::string>& column_names,
                  Report& report);
/// The folder of an adapter.
void inspect_adapter(const std::string& folder, Report& report);
/// A run's output directory.
void inspect_run(const std::string& folder, Report& report);
void inspect_checkpoint(const std::string& folder, Report& report);
/// A run file (YAML) with the keys of docs/configuration.md.
void inspect_run_file(const std::string& path, Report& report);
/// Compares the files of `folder` with `list`, in the format of sha256sum. Names every file that
/// differs, is missing, or is not in the list; files and folders whose names begin with a dot and
/// the list itself are left out.
void inspect_checksums(const std::string& folder, const std::string& list, Report& report);

}  // namespace troupe::launch::commands
