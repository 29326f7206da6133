// Whether the options of oneOf exclude each other.
#pragma once

#include <span>

#include "engine/base/json.h"
#include "engine/constraints/grammar.h"
#include "engine/constraints/schema_path.h"

namespace troupe::engine::constraints {

/// Throws Failure (Errc::unsupported) unless the types or constants of the options, or constants of
/// a property that all of them require, show that no instance satisfies two. `grammar`: charged for
/// the work, which is linear.
void check_exclusive(std::span<const Json* const> options, const SchemaPath& where,
                     const Grammar& grammar);

}  // namespace troupe::engine::constraints
