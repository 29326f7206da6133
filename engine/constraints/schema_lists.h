// Elements of arrays of schemas, as a part of SchemaCompiler.
#pragma once

#include <vector>

#include "engine/constraints/repetition.h"
#include "engine/constraints/schema_compiler.h"

namespace troupe::engine::constraints {

/// What a conjunction asserts about arrays.
struct SchemaCompiler::Elements {
  std::vector<Atoms> first;
  Atoms rest;
  Repetitions counts;
  bool distinct = false;
};

}  // namespace troupe::engine::constraints
