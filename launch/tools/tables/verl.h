// verl's keys as rows of launch/tools/tables/tool_table.h.
#pragma once

#include <string_view>

namespace troupe::launch::tools::tables {

std::string_view verl_text();

}  // namespace troupe::launch::tools::tables
