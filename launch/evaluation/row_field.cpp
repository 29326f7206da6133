#include "launch/evaluation/row_field.h"

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "launch/evaluation/python_literal.h"
#include "launch/evaluation/python_text.h"

namespace troupe::launch::evaluation {

Result<RowField> RowField::compile(const Json& spec, const std::set<std::string>& columns,
                                   const std::string& where) {
  RowField out(spec, where);
  if (!spec.is_string()) return out;
  out.column_ = columns.contains(spec.string());
  if (out.column_) return out;
  auto made = DocTemplate::compile(spec.string(), where);
  RETURN_IF_ERROR(made);
  out.template_ = std::move(*made);
  return out;
}

/// The column, the rendered text, or the constant.
Result<Json> RowField::value(const Json& row) const {
  if (column_) {
    const Json* found = row.find(spec_.string());
    if (found == nullptr)
      return fail(Errc::bad_input, cat(where_, ": the row has no column ", quote(spec_.string())));
    return *found;
  }
  if (!template_) return spec_;
  auto text = template_->render(row);
  RETURN_IF_ERROR(text);
  return Json(std::move(*text));
}

Result<std::string> RowField::text(const Json& row) const {
  auto out = value(row);
  RETURN_IF_ERROR(out);
  if (!out->is_string())
    return fail(Errc::bad_input, cat(where_, ": expected a text, found ", out->type_name(), ' ',
                                     quote(out->dump())));
  return out->string();
}

Result<Json> RowField::target(const Json& row, bool choices) const {
  auto out = value(row);
  RETURN_IF_ERROR(out);
  if (!template_) return out;
  const std::string& text = out->string();
  if (choices && is_number(text))
    if (const auto number = parse_number<std::int64_t>(text)) return Json(*number);
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']')
    if (auto list = parse_python_literal(text)) return *list;
  return out;
}

Result<std::vector<std::string>> RowField::choices(const Json& row) const {
  auto list = value(row);
  RETURN_IF_ERROR(list);
  if (template_) {
    auto parsed = parse_python_literal(list->string());
    if (!parsed)
      return fail(Errc::bad_input, cat(where_, ": expected a list, found ", quote(list->string())));
    list = std::move(*parsed);
  }
  std::vector<std::string> out;
  Json::Array items;
  if (list->is_array()) items = list->array();
  if (list->is_object())
    for (const auto& [name, item] : list->object()) items.push_back(item);
  for (const Json& item : items) {
    if (!item.is_string())
      return fail(Errc::bad_input, cat(where_, ": expected texts, found ", quote(item.dump()),
                                       "; write words like yes and no in quotation marks"));
    out.push_back(item.string());
  }
  if (out.empty())
    return fail(Errc::bad_input,
                cat(where_, ": expected a list of choices, found ", quote(list->dump())));
  return out;
}

}  // namespace troupe::launch::evaluation
