// Rows of a file as lines of text, for the tests of the row readers.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
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

/// Reads the file with every byte replaced by each of `bytes`, and cut at every length: no form may
/// crash or give more than `max_rows` rows. Under the sanitizers this is a fuzzer.
inline void expect_damage_refused(Scratch& scratch, const std::string& name,
                                  const std::string& text, std::string_view bytes,
                                  std::size_t max_rows) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char c : bytes) {
      auto damaged = text;
      damaged[at] = c;
      EXPECT_LE(read_all(scratch.write(name, damaged)).size(), max_rows);
    }
    read_all(scratch.write(name, text.substr(0, at)));
  }
}

}  // namespace troupe::engine::data
