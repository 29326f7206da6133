// What the tests of the row readers share: a file's rows as lines of text.
#pragma once

#include <string>
#include <vector>

#include "engine/data/readers/row_reader.h"
#include "tests/engine/data/scratch.h"

namespace troupe::engine::data {

/// Every row as its line and text, errors as "!message"; a final one ends it.
inline std::vector<std::string> read_all(const std::string& path, const ReadOptions& options = {}) {
  auto reader = open_rows(path, options);
  if (!reader) return {"!!" + reader.error().what};
  std::vector<std::string> out;
  for (;;) {
    auto row = (*reader)->next();
    if (!row) {
      out.push_back("!" + row.error().what);
      if (row.error().code != Errc::bad_input) return out;
    } else if (!*row) {
      return out;
    } else {
      out.push_back(std::to_string((*row)->line) + " " + (*row)->value.dump());
    }
  }
}

}  // namespace troupe::engine::data
