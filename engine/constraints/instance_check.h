// InstanceCheck: whether a value that a schema names, such as a constant, satisfies schemas.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "engine/constraints/conjunction.h"
#include "engine/constraints/pattern_cache.h"
#include "engine/constraints/schema_source.h"

namespace troupe::engine::constraints {

/// Follows JSON Schema draft 2020-12, and the older names of its keywords.
class InstanceCheck {
 public:
  InstanceCheck(const Grammar& grammar, SchemaSource& source, PatternCache& patterns)
      : grammar_(grammar), source_(source), patterns_(patterns) {}

  /// Whether the value satisfies what the atom itself asserts, without `allOf` and other keywords
  /// that a Conjunction expands. False where it is not certain.
  bool satisfies(const Json& value, const Atom& atom);
  /// Whether the value is an instance of the schema. `doubt`: the answer where it is not certain.
  bool is_instance(const Json& value, const Json& schema, bool doubt, int depth = 0);

 private:
  struct Task {
    const Json& schema;
    bool doubt;
    int depth;
  };
  bool asserts(const Json& value, const Task& task, const std::string& keyword, const Json& wanted);
  bool is_local(const Json& value, const Task& task);
  bool applies(const Json& value, const Task& task, const std::string& keyword, const Json& wanted);
  bool is_among(const Json& value, const Json& values);
  bool matches(const std::string& text, const std::string& pattern, bool doubt);
  bool string_is(const Json& value, const Task& task, const std::string& keyword,
                 const Json& wanted);
  bool number_is(const Json& value, const Task& task, const std::string& keyword,
                 const Json& wanted);
  bool list_is(const Json& value, const Task& task, const std::string& keyword, const Json& wanted);
  bool object_is(const Json& value, const Task& task, const std::string& keyword,
                 const Json& wanted);
  bool dependencies_hold(const Json& value, const Task& task, const Json& wanted);
  bool others_are(const Json& value, const Task& task, const Json& wanted);

  const Grammar& grammar_;
  SchemaSource& source_;
  PatternCache& patterns_;
  std::unordered_map<const Json*, std::unordered_set<std::string>> constants_;
};

}  // namespace troupe::engine::constraints
