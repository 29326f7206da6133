// Tables of aligned columns, for terminals.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace troupe::launch::evaluation {

/// Rows of equal length, the first of which is the header; columns from `first_right` on are
/// aligned at the right. Columns are counted in code points.
std::string text_table(const std::vector<std::vector<std::string>>& rows, std::size_t first_right);

}  // namespace troupe::launch::evaluation
