// OpenRLHF's options as rows of launch/tools/tables/tool_table.h: the names until 0.9
// and those since.
#pragma once

#include <string_view>

namespace troupe::launch::tools::tables {

std::string_view openrlhf_text();

}  // namespace troupe::launch::tools::tables
