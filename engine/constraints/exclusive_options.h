// Whether the options of oneOf exclude each other.
#pragma once

#include <optional>
#include <span>
#include <utility>

#include "engine/base/json/json.h"
#include "engine/constraints/grammar.h"
#include "engine/constraints/schema_path.h"

namespace troupe::engine::constraints {

/// Indices of two options, the lower one first.
using OptionPair = std::pair<std::size_t, std::size_t>;

/// Nothing when the types or constants of the options, or constants of a property that all of them
/// require, show that no instance satisfies two; else two that an instance may satisfy. `grammar`:
/// charged for the work, which is linear.
std::optional<OptionPair> find_overlap(std::span<const Json* const> options,
                                       const Grammar& grammar);
/// Throws Failure (Errc::unsupported).
[[noreturn]] void refuse_overlap(OptionPair options, const SchemaPath& where);

}  // namespace troupe::engine::constraints
