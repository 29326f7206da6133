#include "engine/base/log/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/base/log/log_file.h"
#include "engine/base/text/terminal_text.h"
#include "engine/base/text/text.h"

namespace troupe {
namespace {

constexpr std::size_t max_line_bytes = 4096, max_early_lines = 256;

std::atomic<void (*)()> before_line = nullptr, after_line = nullptr;
std::atomic<LogLevel> shown_level = LogLevel::info;

std::shared_ptr<spdlog::logger> terminal() {
  static const auto logger = [] {
    auto made = std::make_shared<spdlog::logger>("troupe",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%H:%M:%S %L %v");
    made->set_level(spdlog::level::debug);
    return made;
  }();
  return logger;
}

spdlog::level::level_enum to_library(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// The log file of this process, and the lines from before it was opened.
struct FileSink {
  std::mutex mutex;
  std::optional<LogFile> file;
  std::vector<std::string> early;
};
FileSink& file_sink() {
  static FileSink sink;
  return sink;
}

std::string escaped_line(std::string_view text) {
  if (text.size() > max_line_bytes) {
    std::size_t end = max_line_bytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text = text.substr(0, end);
  }
  std::string out;
  for (const char c : for_terminal(text)) {
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

void write_to_file(LogLevel level, std::string_view line) {
  if (level < std::min(log_level(), LogLevel::info)) return;
  const char letter = "DIWE"[static_cast<std::size_t>(level)];
  FileSink& sink = file_sink();
  const std::lock_guard lock(sink.mutex);
  const std::string dated = cat(utc_time(), " ", letter, " ", line, "\n");
  if (sink.file)
    sink.file->write(dated);
  else if (sink.early.size() < max_early_lines)
    sink.early.push_back(dated);
}

}  // namespace

void log(LogLevel level, std::string_view text) {
  const std::string line = escaped_line(text);
  if (level >= log_level()) {
    const auto before = before_line.load();  // loaded first: after_line is set before it
    const auto after = after_line.load();
    if (before) before();
    terminal()->log(to_library(level), line);
    if (before && after) after();
  }
  write_to_file(level, line);
}

void log_to_file(LogLevel level, std::string_view text) {
  write_to_file(level, escaped_line(text));
}

void set_log_level(LogLevel level) {
  shown_level = level;
}

LogLevel log_level() {
  return shown_level;
}

Result<> set_log_file(const OutputFolder& folder, const std::string& name) {
  auto file = LogFile::open(folder, name);
  RETURN_IF_ERROR(file);
  FileSink& sink = file_sink();
  const std::lock_guard lock(sink.mutex);
  sink.file = std::move(*file);
  for (const std::string& line : sink.early) sink.file->write(line);
  sink.early.clear();
  return {};
}

void close_log_file() {
  FileSink& sink = file_sink();
  const std::lock_guard lock(sink.mutex);
  sink.file.reset();
}

void set_log_hooks(void (*before)(), void (*after)()) {
  after_line = after;
  before_line = before;
}

}  // namespace troupe
