// Options of MindSpeed-LLM and keys of MindSpeed-RL as rows of launch/tools/tables/tool_table.h.
#pragma once

#include <string_view>

namespace troupe::launch::tools::tables {

std::string_view mindspeed_text();

}  // namespace troupe::launch::tools::tables
