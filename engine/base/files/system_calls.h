// System calls on files, with their errors as values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/base/errors/error.h"

namespace troupe {

/// "PATH: cannot VERB: REASON" for the present errno: Errc::not_found for ENOENT,
/// Errc::full for ENOMEM, Errc::io otherwise.
[[nodiscard]] tl::unexpected<Error> system_error(const std::string& path, std::string_view verb);

/// The size of an open file. Errc::io if it is not a regular file: a FIFO would wait for ever, a
/// device would never end.
Result<std::size_t> regular_file_size(int file, const std::string& path);
/// The content of an open regular file of at most `limit` bytes. Errc::io, Errc::bad_input.
Result<std::string> read_whole(int file, const std::string& path, std::size_t limit);
/// Whether a write to a full disk fails at once, or waits for space (space_wait.h).
enum class OnFullDisk { fail, wait };
/// Writes all of `content`. Errc::io.
Result<> write_whole(int file, std::string_view content, const std::string& path,
                     OnFullDisk full = OnFullDisk::fail);

/// Opens /dev/null for each of the descriptors 0, 1 and 2 that is closed. Called before anything
/// else is opened: the next file would otherwise become stdout or stderr and receive their output.
/// Writing to such a stdout fails, so results that nobody can receive are still an error.
void open_standard_streams();

}  // namespace troupe
