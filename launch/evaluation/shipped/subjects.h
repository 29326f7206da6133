// Subjects of MMLU, C-Eval and CMMLU, as lm-evaluation-harness groups and names them.
#pragma once

#include <string>
#include <vector>

namespace troupe::launch::evaluation {

struct MmluArea {
  std::string name;
  std::vector<std::string> subjects;
};
struct Subject {
  std::string name, chinese;
};

const std::vector<MmluArea>& mmlu_areas();
const std::vector<Subject>& ceval_subjects();
const std::vector<Subject>& cmmlu_subjects();

}  // namespace troupe::launch::evaluation
