#include "launch/evaluation/doc_template.h"

#include "engine/base/text/text.h"
#include "engine/jinja/interpreter.h"
#include "engine/jinja/statement_parser.h"

namespace troupe::launch::evaluation {

namespace jinja = engine::jinja;

struct DocTemplate::Parsed {
  std::string source, where;
  jinja::Block block;
};

Result<DocTemplate> DocTemplate::compile(std::string source, std::string where) {
  try {
    jinja::Block block =
        jinja::parse_template(source, {.trims_blocks = false, .keeps_trailing_newline = true});
    return DocTemplate(std::make_shared<const Parsed>(
        Parsed{std::move(source), std::move(where), std::move(block)}));
  } catch (const Failure& failure) {
    return fail(Errc::usage, cat(where, ": ", failure.error().what));
  }
}

Result<std::string> DocTemplate::render(const Json& row) const {
  try {
    jinja::Interpreter interpreter({.strict = true});
    for (const auto& [name, value] : row.object())
      interpreter.define(name, jinja::Value::from_json(value));
    return interpreter.run(parsed_->block);
  } catch (const Failure& failure) {
    std::vector<std::string> columns;
    for (const auto& [name, value] : row.object()) columns.push_back(name);
    return fail(Errc::bad_input, cat(parsed_->where, ": ", failure.error().what,
                                     "; the row has the columns ", join(columns, ", ")));
  }
}

const std::string& DocTemplate::source() const {
  return parsed_->source;
}

}  // namespace troupe::launch::evaluation
