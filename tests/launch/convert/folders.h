// Folders with the files that they have, for tests of conversions.
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "engine/base/files/file.h"

namespace troupe::launch {

/// Every file below the folder with its content.
inline std::map<std::string, std::string> files_of(const std::string& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      out[entry.path().lexically_relative(folder).string()] =
          value_or_throw(read_file(entry.path().string()));
  return out;
}

inline void expect_same_folder(const std::string& found, const std::string& expected) {
  const auto a = files_of(found), b = files_of(expected);
  for (const auto& [name, content] : b)
    EXPECT_TRUE(a.contains(name) && a.at(name) == content) << found << ": " << name;
  for (const auto& [name, content] : a) EXPECT_TRUE(b.contains(name)) << found << ": " << name;
}

/// Changes the last byte of a file.
inline void flip_a_bit(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const char last = static_cast<char>(file.get() ^ 1);
  file.seekp(-1, std::ios::end);
  file.put(last);
}

}  // namespace troupe::launch
