#include "launch/evaluation/shipped/shipped_tasks.h"

namespace troupe::launch::evaluation {

const std::map<std::string, std::string>& shipped_tasks() {
  static const std::map<std::string, std::string> all = [] {
    shipped::Texts out;
    shipped::add_subjects(out);
    shipped::add_choices(out);
    shipped::add_texts(out);
    return out;
  }();
  return all;
}

}  // namespace troupe::launch::evaluation
