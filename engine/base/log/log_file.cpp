#include "engine/base/log/log_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "engine/base/files/system_calls.h"

namespace troupe {

Result<LogFile> LogFile::open(OutputFolder folder, std::string name, std::size_t max_bytes) {
  LogFile log(std::move(folder), std::move(name), max_bytes);
  RETURN_IF_ERROR(log.reopen());
  return log;
}

Result<> LogFile::reopen() {
  auto file = folder_.append(name_);
  RETURN_IF_ERROR(file);
  const auto size = regular_file_size(file->get(), name_);
  RETURN_IF_ERROR(size);
  file_ = std::move(*file);
  bytes_ = *size;
  return {};
}

void LogFile::write(std::string_view line) {
  if (bytes_ > 0 && bytes_ + line.size() > max_bytes_ && folder_.rename(name_, name_ + ".1"))
    static_cast<void>(reopen());
  if (write_whole(file_.get(), line, name_)) bytes_ += line.size();
}

std::string utc_text(double seconds) {
  const auto whole = static_cast<std::time_t>(std::floor(seconds));
  const int milliseconds =
      std::clamp(static_cast<int>((seconds - static_cast<double>(whole)) * 1e3), 0, 999);
  std::tm parts{};
  ::gmtime_r(&whole, &parts);
  std::array<char, 32> date{};
  std::array<char, 8> fraction{};
  std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(fraction.data(), fraction.size(), ".%03dZ", milliseconds);
  return std::string(date.data()) + fraction.data();
}

std::string utc_time() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return utc_text(static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9);
}

}  // namespace troupe
