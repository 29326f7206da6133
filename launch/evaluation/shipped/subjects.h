// Subjects of MMLU, C-Eval and CMMLU, as lm-evaluation-harness groups and names them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::launch::evaluation {

struct MmluArea {
  std::string name;
  std::vector<std::string> subjects;
};
struct Subject {
  std::string_view name, chinese;
};

const std::vector<MmluArea>& mmlu_areas();
std::span<const Subject> ceval_subjects();
std::span<const Subject> cmmlu_subjects();

}  // namespace troupe::launch::evaluation
