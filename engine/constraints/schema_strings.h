// What schemas assert about strings; SchemaCompiler has the rules.
#pragma once

#include <string>
#include <vector>

#include "engine/constraints/conjunction.h"
#include "engine/constraints/repetition.h"

namespace troupe::engine::constraints {

/// What a conjunction asserts about strings.
struct StringFacts {
  std::vector<std::string> patterns, formats;
  std::vector<const std::string*> denied;  // patterns that must not match
  std::vector<std::string> excluded;       // texts
  Repetitions length;
  bool counted = false;
};

StringFacts string_facts_of(const Conjunction& all);

}  // namespace troupe::engine::constraints
