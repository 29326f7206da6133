// Logging: one line per message, to stderr and (in a run) to a file. Only log.cpp uses the logging
// library.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

enum class LogLevel { debug, info, warning, error };

/// Writes one line. Control characters are escaped, lines are cut at 4 KiB. Safe from any thread.
void log(LogLevel level, std::string_view text);
inline void log_info(std::string_view text) {
  log(LogLevel::info, text);
}
inline void log_warning(std::string_view text) {
  log(LogLevel::warning, text);
}
inline void log_error(std::string_view text) {
  log(LogLevel::error, text);
}

/// Lines below `level` are dropped (default: info).
void set_log_level(LogLevel level);
/// Appends lines to this file as well from now on. Empty: no file.
void set_log_file(const std::string& path);
/// Called before and after each line on stderr, so that a progress bar can be cleared.
/// nullptr: no hook.
void set_log_hooks(void (*before)(), void (*after)());

}  // namespace troupe
