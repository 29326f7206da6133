// Reading what has no size: standard input, pipes, devices.
#pragma once

#include <string>

#include "engine/base/errors/error.h"

namespace troupe {

/// Reads to the end, at most `limit` bytes. Errc::not_found, io, bad_input (more bytes).
Result<std::string> read_stream(const std::string& path, std::size_t limit);

}  // namespace troupe
