#include "launch/serve/api/constraint_fields.h"

#include <utility>

#include "engine/base/text.h"
#include "launch/serve/api/failure.h"

namespace troupe::launch::serve::api {

namespace {

constexpr std::size_t max_choices_given = 10'000;

Json any_object() {
  return Json::Object{{"type", "object"}};
}

/// Schemas may be sent as text.
Json read_schema(const Json& value, const std::string& field) {
  if (!value.is_string()) return value;
  auto parsed = parse_json(value.string(), field);
  if (!parsed) refuse(field, parsed.error().what);
  return std::move(*parsed);
}

Json read_choices(const Json& value, const std::string& field) {
  if (!value.is_array() || value.array().empty() || value.array().size() > max_choices_given)
    refuse(field, cat(field, ": expected a list of 1 to ", max_choices_given, " texts"));
  for (const Json& each : value.array())
    if (!each.is_string() || each.string().empty())
      refuse(field, cat(field, ": expected texts that are not empty"));
  return value;
}

/// Collects the constraints of a request, of which there may be one.
class Constraints {
 public:
  void add(ConstraintKind kind, Json value, const std::string& field) {
    if (found_)
      refuse(field, cat(field, " is not allowed with ", found_->field, ": one constraint at most"));
    found_ = ConstraintText{kind, std::move(value), field};
  }
  /// The constraints among `fields` with `prefix` before their names.
  void read(RequestFields& fields, const std::string& prefix) {
    const auto path = [&](const char* name) { return fields.path(prefix + name); };
    if (const Json* value = fields.find(prefix + "json"))
      add(ConstraintKind::schema, read_schema(*value, path("json")), path("json"));
    if (const auto text = fields.text(prefix + "regex"))
      add(ConstraintKind::regex, *text, path("regex"));
    if (const Json* value = fields.find(prefix + "choice"))
      add(ConstraintKind::choice, read_choices(*value, path("choice")), path("choice"));
    if (const auto text = fields.text(prefix + "grammar"))
      add(ConstraintKind::grammar, *text, path("grammar"));
  }
  std::optional<ConstraintText> take() { return std::move(found_); }

 private:
  std::optional<ConstraintText> found_;
};

void read_response_format(RequestFields& fields, Constraints& constraints) {
  const Json* format = fields.find("response_format");
  if (format == nullptr) return;
  RequestFields members(*format, "response_format.");
  const auto type = members.text("type");
  if (type == "text") return;
  if (type == "json_object") {
    const Json* schema = members.find("schema");
    if (schema == nullptr)
      return constraints.add(ConstraintKind::schema, any_object(), "response_format");
    return constraints.add(ConstraintKind::schema, *schema, members.path("schema"));
  }
  if (type != "json_schema")
    refuse_unsupported("response_format",
                       "response_format.type: expected text, json_object or "
                       "json_schema");
  const Json* described = members.find("json_schema");
  if (described == nullptr)
    refuse("response_format.json_schema", "response_format.json_schema is missing");
  RequestFields inner(*described, "response_format.json_schema.");
  const Json* schema = inner.find("schema");
  if (schema == nullptr) refuse(inner.path("schema"), cat(inner.path("schema"), " is missing"));
  constraints.add(ConstraintKind::schema, *schema, inner.path("schema"));
}

/// Names of llama.cpp and SGLang. There an empty text is none.
void read_other_names(RequestFields& fields, Constraints& constraints) {
  if (const Json* value = fields.find("json_schema"); value && *value != Json(""))
    constraints.add(ConstraintKind::schema, read_schema(*value, "json_schema"), "json_schema");
  for (const auto& [name, kind] :
       {std::pair("grammar", ConstraintKind::grammar), std::pair("ebnf", ConstraintKind::grammar),
        std::pair("regex", ConstraintKind::regex)})
    if (const auto text = fields.text(name); text && !text->empty())
      constraints.add(kind, *text, name);
}

}  // namespace

std::optional<ConstraintText> read_constraint(RequestFields& fields) {
  Constraints constraints;
  read_response_format(fields, constraints);
  if (const Json* value = fields.find("structured_outputs")) {
    RequestFields members(*value, "structured_outputs.");
    constraints.read(members, "");
    if (members.flag("json_object", false))
      constraints.add(ConstraintKind::schema, any_object(), members.path("json_object"));
    for (const std::string& name : members.unknown())
      refuse_unsupported(name, cat(name,
                                   " is not supported; supported: json, regex, choice, "
                                   "grammar, json_object"));
  }
  constraints.read(fields, "guided_");
  read_other_names(fields, constraints);
  return constraints.take();
}

}  // namespace troupe::launch::serve::api
