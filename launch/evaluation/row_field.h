// RowField: what a key of a task file takes from a row: a column, a template, or a constant.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launch/evaluation/doc_template.h"

namespace troupe::launch::evaluation {

class RowField {
 public:
  /// `columns`: of the evaluated rows; a text that names one of them is that column. Errc::usage.
  static Result<RowField> compile(const Json& spec, const std::set<std::string>& columns,
                                  const std::string& where);

  /// doc_to_text. Errc::bad_input for anything but a text.
  Result<std::string> text(const Json& row) const;
  /// doc_to_target: a text, a whole number or a list. With `choices`, digits are a number; a list
  /// of Python is a list.
  Result<Json> target(const Json& row, bool choices) const;
  /// doc_to_choice.
  Result<std::vector<std::string>> choices(const Json& row) const;

 private:
  RowField(Json spec, std::string where) : spec_(std::move(spec)), where_(std::move(where)) {}
  Result<Json> value(const Json& row) const;

  Json spec_;
  std::string where_;
  bool column_ = false;
  std::optional<DocTemplate> template_;
};

}  // namespace troupe::launch::evaluation
