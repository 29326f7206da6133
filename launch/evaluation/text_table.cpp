#include "launch/evaluation/text_table.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"

namespace troupe::launch::evaluation {

std::string text_table(const std::vector<std::vector<std::string>>& rows, std::size_t first_right) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], count_code_points(row[c]));
  std::string out;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t c = 0; c < widths.size(); ++c) {
      const std::string space(widths[c] - count_code_points(rows[r][c]), ' ');
      const bool number = c >= first_right;
      line += cat(c == 0 ? "" : "  ", number ? space : "", rows[r][c], number ? "" : space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
    if (r == 0) out += std::string(line.size(), '-') + '\n';
  }
  return out;
}

}  // namespace troupe::launch::evaluation
