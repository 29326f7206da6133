// Logging: one line per message, to stderr and (in a run) to a file. Only log.cpp uses the logging
// library.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "engine/base/files/output_folder.h"

namespace troupe {

enum class LogLevel { debug, info, warning, error };
/// Names of the levels, in the order of the enumerators.
constexpr std::array<std::string_view, 4> names_of(LogLevel) {
  return {"debug", "info", "warning", "error"};
}

/// Writes one line. Passes through for_terminal(), newlines are escaped, too; lines are cut at
/// 4 KiB. Safe from any thread.
void log(LogLevel level, std::string_view text);
inline void log_debug(std::string_view text) {
  log(LogLevel::debug, text);
}
inline void log_info(std::string_view text) {
  log(LogLevel::info, text);
}
inline void log_warning(std::string_view text) {
  log(LogLevel::warning, text);
}
inline void log_error(std::string_view text) {
  log(LogLevel::error, text);
}
/// Writes a line to the log file only, for a message that is printed to stderr otherwise.
void log_to_file(LogLevel level, std::string_view text);

/// Lines below `level` are not shown on stderr (default: info). The file receives them from info
/// on, or from `level` on if that is lower.
void set_log_level(LogLevel level);
LogLevel log_level();
/// Appends lines to FOLDER/NAME as well from now on (LogFile), beginning with up to 256 lines that
/// were logged before: "2026-11-24T22:01:54.123Z W text". Errc::io.
Result<> set_log_file(const OutputFolder& folder, const std::string& name);
/// Ends the output to the file.
void close_log_file();
/// Called before and after each line on stderr, so that a progress bar can be cleared.
/// nullptr: no hook.
void set_log_hooks(void (*before)(), void (*after)());

}  // namespace troupe
