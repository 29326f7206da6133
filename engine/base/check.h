// check(): the one assertion of the tree. It is for our own mistakes only; it stays on in release
// builds.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string_view>

namespace troupe {

/// A broken invariant of ours. Ends the actor in which it happens.
class Bug : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Throws Bug, naming the place, when `ok` is false. Do not build strings for `what` on a hot path:
/// pass a literal.
void check(bool ok, std::string_view what,
           std::source_location where = std::source_location::current());

}  // namespace troupe
