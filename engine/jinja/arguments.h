// Python's rules for the arguments of a call.
#pragma once

#include "engine/jinja/value.h"

namespace troupe::engine::jinja {

/// Raises the errors of Python: too many arguments, an unknown name, a repeated name, a missing
/// argument. `parameters` names them in order, with "?" after an optional one ("old new count?"); a
/// leading "/ " means that none may be given by name; "*" allows any arguments.
void check_arguments(std::string_view callee, std::string_view parameters,
                     const Arguments& arguments);

/// Raises for values that cannot be keys of a dict: lists, dicts, and tuples of them.
void require_hashable(const Value& key);

}  // namespace troupe::engine::jinja
