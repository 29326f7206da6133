// The bug that is switched on in the copies of algorithms/ that CMakeLists.txt makes for
// planted_test.cpp.
#pragma once

#include <string_view>

namespace troupe::simulator {

inline std::string_view planted_bug;  ///< its name; empty: none

inline bool planted(std::string_view name) {
  return planted_bug == name;
}

}  // namespace troupe::simulator
