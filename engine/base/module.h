// Modules: libraries of our own that stand beside the program and are loaded when they are needed,
// so that nobody else pays for what they link.
#pragma once

#include <string>

#include "engine/base/error.h"

namespace troupe {

/// The address of `symbol` in `library` ("libtroupe_parquet.so"), which is looked for beside the
/// program, one folder up (programs of the tests), and in an installation's lib. It stays loaded to
/// the end: threads and static objects of what it links do not survive closing. Errc::not_found
/// when it is not there, Errc::unsupported when it cannot be loaded; `what` says where and why.
Result<void*> load_from_module(const std::string& library, const char* symbol);

}  // namespace troupe
