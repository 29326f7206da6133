#include "engine/base/errors/check.h"

#include "engine/base/errors/error.h"
#include "engine/base/text/text.h"

namespace troupe {

namespace {

// Not in check(), which with the message's strings would have a frame that the stack protector
// guards: twice the instructions of a check that holds.
[[noreturn]] [[gnu::noinline]] void violated(std::string_view what, std::source_location where) {
  throw Bug(cat(where.file_name(), ":", where.line(), ": ", what,
                " (a bug in troupe, not in your input)"));
}

}  // namespace

void check(bool ok, std::string_view what, std::source_location where) {
  if (!ok) violated(what, where);
}

const char* to_string(Errc code) {
  return names_of(code)[static_cast<std::size_t>(code)].data();
}

}  // namespace troupe
