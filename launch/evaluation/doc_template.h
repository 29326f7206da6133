// DocTemplate: a Jinja2 template over the columns of a row, as task files have them.
#pragma once

#include <memory>
#include <string>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"

namespace troupe::launch::evaluation {

class DocTemplate {
 public:
  /// Jinja2 with StrictUndefined, keep_trailing_newline and no trimming of blocks. `where` (file,
  /// line and key) starts messages. Errc::usage.
  static Result<DocTemplate> compile(std::string source, std::string where);
  /// The text for a row, an object. Errc::bad_input for a column that does not exist, and other
  /// failures of the template.
  Result<std::string> render(const Json& row) const;
  const std::string& source() const;

 private:
  struct Parsed;
  explicit DocTemplate(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}
  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace troupe::launch::evaluation
