// LineMembers: the members of the input lines of `troupe generate`.
#pragma once

#include <set>
#include <string>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"

namespace troupe::launch::commands {

class LineMembers {
 public:
  /// Warns once about each name that is not used. Errc::bad_input for a misspelled sampling
  /// setting: it would be ignored otherwise.
  Result<> check(const Json& line);

 private:
  std::set<std::string, std::less<>> warned_;
};

}  // namespace troupe::launch::commands
