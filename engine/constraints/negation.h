// Negations of schemas.
#pragma once

#include <string_view>
#include <vector>

#include "engine/constraints/conjunction.h"

namespace troupe::engine::constraints {

/// Whether the negation of the schema is asserted as it is: of one keyword, `type`, `pattern` or an
/// `enum` of null, booleans and strings.
bool is_plain_negation(const Json& schema);

/// The ways to violate what `atom`, a negated one, has: one for each of its keywords, or several.
class Negation {
 public:
  /// `parts` has the atoms that are made; all must outlive this.
  Negation(Conjunctions& parts, SchemaSource& source, const Atom& atom)
      : parts_(parts), source_(source), atom_(atom) {}

  /// Ways that cannot be expressed are left out. Throws Failure (Errc::unsupported) when there is
  /// none left although the schema asserts something; empty when it asserts nothing.
  std::vector<Atoms> options();

 private:
  void add(std::string_view keyword, const Json& value);
  void add_beyond(std::string_view keyword, const Json& value);
  void add_lists(std::string_view keyword, const Json& value);
  void add_constants(const Json& values);
  void add_members(const Json& properties);
  Atom* made(Json::Object schema, bool negated = false);
  Atom* child(const Json& schema, const SchemaPath& where, bool negated);

  Conjunctions& parts_;
  SchemaSource& source_;
  const Atom& atom_;
  std::vector<Atoms> options_;
};

}  // namespace troupe::engine::constraints
