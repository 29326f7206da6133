// Task files of BoolQ, HellaSwag, ARC, AGIEval and WikiText.
#pragma once

#include <map>
#include <string>

namespace troupe::launch::evaluation::shipped {

/// Adds the texts by the names of their tasks and groups.
void add_choices(std::map<std::string, std::string>& out);

}  // namespace troupe::launch::evaluation::shipped
