// Report: what `troupe info` found out, for a person or, with --json, for a machine.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/json.h"

namespace troupe::launch {

class Report {
 public:
  /// From here on facts are about this: "model", "tokenizer", "data", ... `title` is what a person
  /// reads behind it.
  void begin(const std::string& kind, const std::string& title);
  /// A fact: `key` and `value` for machines, `text` for a person.
  void say(const std::string& key, Json value, const std::string& text);
  /// For machines alone; for a person alone.
  void fact(const std::string& key, Json value) { things_.back().facts.set(key, std::move(value)); }
  void line(const std::string& text) { things_.back().lines.push_back(text); }
  /// Something odd that does not stand in the way.
  void note(const std::string& text);
  /// Why it cannot be used. The first one decides the exit code.
  void problem(const Error& error);

  bool empty() const { return things_.empty(); }
  /// Prints everything to stdout; the exit code.
  int finish(const std::string& path, bool as_json) const;

 private:
  struct Thing {
    std::string kind, title;
    Json facts = Json::Object{};
    std::vector<std::string> lines, notes;
    std::vector<Error> problems;
  };
  void print() const;
  Json to_json(const std::string& path) const;

  std::vector<Thing> things_;
  int code_ = 0;
};

}  // namespace troupe::launch
