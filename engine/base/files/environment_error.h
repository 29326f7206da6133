// Errors that an exhausted environment causes: memory, open files, threads. Their messages name the
// limit in force.
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/errors/error.h"

namespace troupe {

/// "out of memory: WHAT (ulimit -v limits the address space to 700000 KiB; this machine has 25769
/// MiB of memory)". Names the limit of the control group, too, where there is one. `what` may be
/// empty.
std::string out_of_memory(std::string_view what);
/// Whether `message` contains a text of out_of_memory().
bool is_out_of_memory(std::string_view message);

/// strerror(code); for EMFILE with the limit: "Too many open files (ulimit -n allows 16)"; for
/// ENOMEM out_of_memory("").
std::string reason_of(int code);
/// "WHAT: REASON" for the errno value `code`: Errc::full for ENOMEM, Errc::io otherwise.
Error os_error(int code, std::string_view what);

/// Checks that this process can open `count` more files, for libraries that abort when they cannot.
/// `what` needs them ("a launch of 4 groups"). Errc::io.
Result<> check_open_files(int count, std::string_view what);
/// The same for threads. Errc::full.
Result<> check_threads(int count, std::string_view what);
/// The same for `bytes` of memory, of which nothing is touched. Errc::full.
Result<> check_address_space(std::size_t bytes, std::string_view what);

/// The error for an exception of the standard library that the environment can cause:
/// std::bad_alloc (Errc::full), std::filesystem::filesystem_error (as os_error()),
/// std::system_error (Errc::full if there is no memory or no more threads, otherwise Errc::io).
/// Nothing for any other: a bug.
std::optional<Error> environment_error(const std::exception& exception);

}  // namespace troupe
