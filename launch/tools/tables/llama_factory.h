// LLaMA-Factory's keys as rows of launch/tools/tables/tool_table.h, after those of
// trainer_arguments.h.
#pragma once

#include <string_view>

namespace troupe::launch::tools::tables {

std::string_view llama_factory_text();

}  // namespace troupe::launch::tools::tables
