// Python's rules for the arguments of a call.
#pragma once

#include "engine/jinja/value.h"

namespace troupe::engine::jinja {

/// Raises where Python would: too many arguments, an unknown name, the same one twice, one missing.
/// `parameters` names them in order,
/// "?" behind one that may be absent ("old new count?"); a leading "/ " when none may be given by
/// name; "*": anything goes.
void check_arguments(std::string_view callee, std::string_view parameters,
                     const Arguments& arguments);

/// Raises for what Python cannot use as a dict's key: lists, dicts, tuples of them.
void require_hashable(const Value& key);

}  // namespace troupe::engine::jinja
