// Whether a directory is safe for the files of a run: nobody but root and this user can rename or
// replace it.
#pragma once

#include <string>

#include "engine/base/errors/error.h"

namespace troupe {

/// The path without symbolic links, if it and all directories above it belong to root or to this
/// user and others cannot write to them, or only with the sticky bit (/tmp); this is what sshd
/// requires of its files. Errc::unsupported names the directory and what is wrong with it.
/// Errc::io, Errc::not_found.
Result<std::string> trusted_path(const std::string& path);

}  // namespace troupe
