#include "engine/constraints/json_schema.h"

#include "engine/constraints/schema_compiler.h"

namespace troupe::engine::constraints {

Grammar::Rule add_json_schema(Grammar& grammar, const Json& schema,
                              std::vector<std::string>& notes) {
  const SchemaPath root("#");
  return SchemaCompiler(grammar, schema, notes).compile(schema, root);
}

}  // namespace troupe::engine::constraints
