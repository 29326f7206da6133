// check(): the assertion of this code base, for programming errors only. It stays on in release
// builds.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string_view>

namespace troupe {

/// A violated invariant: a bug in troupe. Ends the actor in which it happens.
class Bug : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Throws Bug with the source location if `ok` is false. Pass a literal as `what` on a hot path.
void check(bool ok, std::string_view what,
           std::source_location where = std::source_location::current());

}  // namespace troupe
