#include "engine/base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>

namespace troupe {
namespace {

std::atomic<void (*)()> before_line = nullptr, after_line = nullptr;

struct Sinks {
  std::shared_ptr<spdlog::logger> terminal;
  std::shared_ptr<spdlog::logger> file;
  Sinks()
      : terminal(std::make_shared<spdlog::logger>(
            "troupe", std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
    terminal->set_pattern("%H:%M:%S %L %v");
  }
};
Sinks& sinks() {
  static Sinks instance;
  return instance;
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

std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 4096)) {
    if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += '?';
    else
      out += c;
  }
  return out;
}

}  // namespace

void log(LogLevel level, std::string_view text) {
  const std::string line = one_line(text);
  if (sinks().terminal->should_log(to_library(level))) {
    const auto before = before_line.load();  // loaded first: after_line is set before it
    const auto after = after_line.load();
    if (before) before();
    sinks().terminal->log(to_library(level), line);
    if (before && after) after();
  }
  if (sinks().file) sinks().file->log(to_library(level), line);
}

void set_log_level(LogLevel level) {
  sinks().terminal->set_level(to_library(level));
}

void set_log_file(const std::string& path) {
  sinks().file = nullptr;
  if (path.empty()) return;
  sinks().file = std::make_shared<spdlog::logger>(
      "file", std::make_shared<spdlog::sinks::basic_file_sink_mt>(path));
  sinks().file->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  sinks().file->flush_on(spdlog::level::info);
}

void set_log_hooks(void (*before)(), void (*after)()) {
  after_line = after;
  before_line = before;
}

}  // namespace troupe
