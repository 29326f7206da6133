// Report: the findings of `troupe info`, printed as text or, with --json, as JSON.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/json.h"

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

}  // namespace troupe::launch::commands
