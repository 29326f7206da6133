#include "launch/journal/metrics_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "engine/base/file.h"
#include "engine/base/text.h"

namespace troupe::launch {

Result<LineFile> LineFile::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0)
    return fail(Errc::io, cat(path, ": cannot open for writing: ", std::strerror(errno)));
  return LineFile(file, path);
}

LineFile::LineFile(LineFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), path_(std::move(other.path_)) {
}
LineFile& LineFile::operator=(LineFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(path_, other.path_);
  return *this;
}
LineFile::~LineFile() {
  if (file_ >= 0) ::close(file_);
}

Result<> LineFile::append(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(Errc::io, cat(path_, ": cannot write: ", std::strerror(errno)));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

std::string metrics_line(std::int64_t step, const algorithms::Metrics& metrics) {
  Json line;
  line.set("step", step);
  for (const auto& [name, value] : metrics)
    line.set(name, std::isfinite(value) ? Json(value) : Json());
  return line.dump() + "\n";
}

namespace {

using Visit = std::function<void(const Json&, std::string_view)>;

void visit_lines(std::string_view rest, const std::string& path, const Visit& visit) {
  for (auto end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    const auto json = parse_json(line, path);
    if (json && json->is_object()) visit(*json, line);
  }
}

}  // namespace

void for_each_line(const std::string& path, const Visit& visit) {
  if (const auto text = read_file(path)) visit_lines(*text, path, visit);
}

Result<> truncate_after(const std::string& path, std::int64_t step, bool once) {
  if (::access(path.c_str(), F_OK) != 0) return {};
  const auto whole = read_file(path);
  RETURN_IF_ERROR(whole);  // do not replace an unreadable file
  std::string kept;
  std::int64_t last = -1;
  visit_lines(*whole, path, [&](const Json& line, std::string_view text) {
    const auto at = get_integer(line, "step", path);
    if (!at || *at > step || *at < last || (once && *at == last)) return;
    last = *at;
    kept.append(text).push_back('\n');
  });
  return write_file_durably(path, kept);
}

}  // namespace troupe::launch
