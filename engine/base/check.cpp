#include "engine/base/check.h"

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace troupe {

void check(bool ok, std::string_view what, std::source_location where) {
  if (ok) return;
  throw Bug(cat(where.file_name(), ":", where.line(), ": ", what,
                " (a bug in troupe, not in your input)"));
}

const char* to_string(Errc code) {
  return names_of(code)[static_cast<std::size_t>(code)].data();
}

}  // namespace troupe
