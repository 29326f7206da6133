// SchemaSource: what the references of a JSON schema lead to (JSON Schema Core, sec. 8.2; RFC
// 3986).
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/base/json/json.h"
#include "engine/constraints/grammar.h"
#include "engine/constraints/member_index.h"
#include "engine/constraints/schema_path.h"

namespace troupe::engine::constraints {

/// References are those to the schema itself and to what has an `$id` or an anchor within it.
/// Nothing is fetched.
class SchemaSource {
 public:
  /// `grammar`: charged. Both must outlive this, and `root` not change.
  SchemaSource(const Grammar& grammar, const Json& root) : grammar_(grammar), root_(root) {}

  /// The target of `reference`, which `schema` has at `where`. Throws Failure: Errc::bad_input when
  /// there is none, unsupported for references to other documents.
  const Json& find(const Json& schema, const std::string& reference, const SchemaPath& where);
  /// Whether parts of the schema have an `$id` of their own, so that the meaning of a reference
  /// depends on its place.
  bool has_resources() {
    index();
    return !bases_.empty();
  }
  /// Whether $schema is a draft in which $ref has no siblings.
  bool references_stand_alone() const;

 private:
  struct Place {
    const Json* value = nullptr;
    std::string base;    // the URI of the resource that it belongs to
    bool named = false;  // the members are schemas by name
  };

  void index();
  void index_schema(Place& place);
  const Json* at_pointer(const Json& from, std::string_view pointer);

  const Grammar& grammar_;
  const Json& root_;
  MemberIndex members_;
  bool indexed_ = false;
  std::unordered_map<std::string, const Json*> targets_;  // by URI, perhaps with an anchor
  std::unordered_map<const Json*, std::string> bases_;    // of schemas of nested resources
  std::string root_base_;
};

/// `reference` in a resource whose URI is `base` (RFC 3986, sec. 5.2).
std::string resolved_uri(std::string_view base, std::string_view reference);

}  // namespace troupe::engine::constraints
