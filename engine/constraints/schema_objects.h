// Members of objects of schemas, as a part of SchemaCompiler.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/constraints/repetition.h"
#include "engine/constraints/schema_compiler.h"
#include "engine/constraints/text_set.h"

namespace troupe::engine::constraints {

/// What a conjunction asserts about objects.
struct SchemaCompiler::Members {
  struct Member {
    std::string_view name;
    bool required = false;
    Atoms value;
  };
  /// A new one where there is none. Throws Failure (Errc::unsupported) beyond the bound.
  Member& find(std::string_view name, const SchemaPath& where);

  std::vector<Member> list;
  std::unordered_map<std::string_view, std::size_t> places;  // until some are left out
  std::size_t required = 0;
  bool any_others = false;         // additionalProperties allows some
  std::vector<std::string> names;  // those that are never written, too
  Repetitions counts;
  bool others = false;
};

/// Names that no keyword mentions, of which the same patterns match all.
struct SchemaCompiler::OtherNames {
  std::optional<TextSet> names;  // nothing: any
  Atoms value;                   // of the patterns
  Atoms matched;                 // atoms of which a pattern matches
};

}  // namespace troupe::engine::constraints
