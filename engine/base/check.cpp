#include "engine/base/check.h"

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace troupe {

void check(bool ok, std::string_view what, std::source_location where) {
  if (ok) return;
  throw Bug(cat(where.file_name(), ":", where.line(), ": ", what, " (a bug in troupe, not in your input)"));
}

const char* to_string(Errc code) {
  switch (code) {
    case Errc::usage:
      return "usage";
    case Errc::bad_input:
      return "bad_input";
    case Errc::not_found:
      return "not_found";
    case Errc::corrupt:
      return "corrupt";
    case Errc::unsupported:
      return "unsupported";
    case Errc::io:
      return "io";
    case Errc::timeout:
      return "timeout";
    case Errc::closed:
      return "closed";
    case Errc::full:
      return "full";
    case Errc::cancelled:
      return "cancelled";
    case Errc::internal:
      return "internal";
  }
  return "internal";
}

}  // namespace troupe
