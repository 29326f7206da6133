#include "launch/commands/info/report.h"

#include <iostream>

#include "engine/base/text/terminal_text.h"
#include "engine/base/text/text.h"
#include "launch/run/exit_code.h"

namespace troupe::launch::commands {

void Report::begin(const std::string& kind, const std::string& title) {
  sections_.push_back({kind, title, Json::Object{}, {}, {}, {}});
}

void Report::say(const std::string& key, Json value, const std::string& text) {
  sections_.back().facts.set(key, std::move(value));
  sections_.back().lines.push_back(text);
}

void Report::note(const std::string& text) {
  sections_.back().notes.push_back(text);
  sections_.back().lines.push_back(cat("note: ", text));
}

void Report::problem(const Error& error) {
  sections_.back().problems.push_back(error);
  sections_.back().lines.push_back(cat("cannot be used: ", error.what));
  if (code_ == 0) code_ = run::exit_code(error.code);
}

void Report::print() const {
  for (const Section& section : sections_) {
    std::cout << section.kind << ": " << for_terminal(section.title) << '\n';
    for (const std::string& line : section.lines) std::cout << "  " << for_terminal(line) << '\n';
  }
  std::cout << (code_ == 0 ? "usable: yes\n" : "usable: no\n");
}

Json Report::to_json(const std::string& path) const {
  Json::Array sections, problems;
  for (const Section& section : sections_) {
    Json one = Json::Object{{"kind", section.kind}};
    for (const auto& [key, value] : section.facts.object()) one.set(key, value);
    if (!section.notes.empty())
      one.set("notes", Json::Array(section.notes.begin(), section.notes.end()));
    sections.push_back(std::move(one));
    for (const Error& error : section.problems) {
      problems.push_back(Json::Object{{"kind", section.kind},
                                      {"error", std::string(to_string(error.code))},
                                      {"what", error.what}});
    }
  }
  return Json::Object{{"path", path},
                      {"usable", code_ == 0},
                      {"exit_code", code_},
                      {"things", sections},
                      {"problems", problems}};
}

int Report::finish(const std::string& path, bool as_json) const {
  if (as_json) {
    std::cout << to_json(path).dump() << '\n';
  } else {
    print();
  }
  return code_;
}

}  // namespace troupe::launch::commands
