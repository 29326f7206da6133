// A validator of JSON schemas, and random schemas whose instances are bounded: the oracle of the
// tests of constraints.
#pragma once

#include <random>
#include <string>

#include "engine/base/json/json.h"

namespace troupe::test {

/// Whether `value` is an instance of `schema` (draft 2020-12), for the keywords of random_schema(),
/// $ref and prefixItems. `root`: of the references.
bool is_instance(const Json& value, const Json& schema, const Json& root);

/// Of at most `depth` levels, with maxLength and maxItems everywhere.
Json random_schema(std::mt19937& random, int depth);

}  // namespace troupe::test
