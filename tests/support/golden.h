// Golden files: the folder that TROUPE_GOLDEN names, or the subset in the repository.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::test {

inline std::string golden_folder() {
  const char* named = std::getenv("TROUPE_GOLDEN");
  return named && *named ? named : TROUPE_TEST_DATA "/golden";
}

inline bool golden_has(const std::string& relative) {
  return std::filesystem::exists(golden_folder() + "/" + relative);
}

/// Fails if the golden folder has none of these files; used by one test of each program.
inline void expect_some_golden(const std::vector<std::string>& relative) {
  for (const auto& path : relative)
    if (golden_has(path)) return;
  FAIL() << "none of the golden files of this program is in " << golden_folder();
}

/// Name of a case from its folder's: a name of GoogleTest has no '-'.
inline constexpr auto name_of_case = [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
};

}  // namespace troupe::test

/// Skips a test whose file is not in the golden folder.
#define SKIP_WITHOUT_GOLDEN(relative)        \
  if (!::troupe::test::golden_has(relative)) \
  GTEST_SKIP() << relative << " is not in " << ::troupe::test::golden_folder()
