// Task files of MMLU, C-Eval and CMMLU, one for each subject.
#pragma once

#include <map>
#include <string>

namespace troupe::launch::evaluation::shipped {

/// Adds the texts by the names of their tasks and groups.
void add_subjects(std::map<std::string, std::string>& out);

}  // namespace troupe::launch::evaluation::shipped
