// Task files of GSM8K, BIG-Bench Hard and HumanEval.
#pragma once

#include <map>
#include <string>

namespace troupe::launch::evaluation::shipped {

/// Adds the texts by the names of their tasks and groups.
void add_texts(std::map<std::string, std::string>& out);

}  // namespace troupe::launch::evaluation::shipped
