// Modules: shared libraries of troupe that are loaded from beside the program on first use, so that
// other runs do not load their dependencies; and other files of an installation.
#pragma once

#include <string>

#include "engine/base/errors/error.h"

namespace troupe {

/// Returns the address of `symbol` in `library` ("libtroupe_parquet.so"), searched for beside the
/// program, in the parent folder (test programs) and in lib/troupe of an installation. Files of
/// other users than root, this one and the owner of the program are not loaded. The library is
/// never unloaded: threads and static objects of its dependencies would not survive it.
/// Errc::not_found if there is no such file, Errc::unsupported if it cannot be loaded.
Result<void*> load_from_module(const std::string& library, const char* symbol);

/// True if there is such a library, which load_from_module would try to load.
bool has_module(const std::string& library);

/// The path of a file of share/troupe, beside the program or its parent folder (test programs, an
/// installation). Files of other users are not used, as above. Errc::not_found.
Result<std::string> find_program_file(const std::string& name);

}  // namespace troupe
