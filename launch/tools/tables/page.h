// The table of a page docs/coming-from-*.md.
#pragma once

#include <string>

#include "launch/tools/tables/tool_table.h"

namespace troupe::launch::tools::tables {

/// All keys of a tool as Markdown, section by section.
std::string table_page(Tool tool);

}  // namespace troupe::launch::tools::tables
