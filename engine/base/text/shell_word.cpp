#include "engine/base/text/shell_word.h"

namespace troupe {

std::string shell_word(std::string_view text) {
  std::string out = "'";
  for (const char c : text)
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  return out + "'";
}

}  // namespace troupe
