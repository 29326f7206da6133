#include "launch/evaluation/shipped/shipped_tasks.h"

#include "launch/evaluation/shipped/choice_tasks.h"
#include "launch/evaluation/shipped/subject_tasks.h"
#include "launch/evaluation/shipped/text_tasks.h"

namespace troupe::launch::evaluation {

const std::map<std::string, std::string>& shipped_tasks() {
  static const std::map<std::string, std::string> all = [] {
    std::map<std::string, std::string> out;
    shipped::add_subjects(out);
    shipped::add_choices(out);
    shipped::add_texts(out);
    return out;
  }();
  return all;
}

}  // namespace troupe::launch::evaluation
