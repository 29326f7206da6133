#include "launch/commands/info/report.h"

#include <iostream>

#include "engine/base/text.h"
#include "launch/run/exit_code.h"

namespace troupe::launch {

void Report::begin(const std::string& kind, const std::string& title) {
  things_.push_back({kind, title, Json::Object{}, {}, {}, {}});
}

void Report::say(const std::string& key, Json value, const std::string& text) {
  things_.back().facts.set(key, std::move(value));
  things_.back().lines.push_back(text);
}

void Report::note(const std::string& text) {
  things_.back().notes.push_back(text);
  things_.back().lines.push_back(cat("note: ", text));
}

void Report::problem(const Error& error) {
  things_.back().problems.push_back(error);
  things_.back().lines.push_back(cat("cannot be used: ", error.what));
  if (code_ == 0) code_ = exit_code(error.code);
}

void Report::print() const {
  for (const Thing& thing : things_) {
    std::cout << thing.kind << ": " << thing.title << '\n';
    for (const std::string& line : thing.lines) std::cout << "  " << line << '\n';
  }
  std::cout << (code_ == 0 ? "usable: yes\n" : "usable: no\n");
}

Json Report::to_json(const std::string& path) const {
  Json::Array things, problems;
  for (const Thing& thing : things_) {
    Json one = Json::Object{{"kind", thing.kind}};
    for (const auto& [key, value] : thing.facts.object()) one.set(key, value);
    if (!thing.notes.empty()) one.set("notes", Json::Array(thing.notes.begin(), thing.notes.end()));
    things.push_back(std::move(one));
    for (const Error& error : thing.problems) {
      problems.push_back(Json::Object{{"kind", thing.kind},
                                      {"error", std::string(to_string(error.code))},
                                      {"what", error.what}});
    }
  }
  return Json::Object{{"path", path},
                      {"usable", code_ == 0},
                      {"exit_code", code_},
                      {"things", things},
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

}  // namespace troupe::launch
