#include "launch/commands/eval/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"

namespace troupe::launch::commands {
namespace {

std::string settings_path(const std::string& path) {
  return path + ".settings.json";
}

std::string value_brief(const Json& value) {
  const std::string text = value.dump();
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

// "rollout.max_new_tokens (32, now 64)" for each member that differs; of objects, for their
// members.
void differences(const std::string& name, const Json& before, const Json& now,
                 std::vector<std::string>& out) {
  if (before == now) return;
  if (!before.is_object() || !now.is_object()) {
    out.push_back(cat(name, " (", value_brief(before), ", now ", value_brief(now), ")"));
    return;
  }
  const auto inside = [&](const std::string& key) {
    return name.empty() ? key : cat(name, "/", key);
  };
  for (const auto& [key, value] : now.object()) {
    const Json* old = before.find(key);
    differences(inside(key), old ? *old : Json(), value, out);
  }
  for (const auto& [key, value] : before.object())
    if (!now.find(key)) differences(inside(key), value, Json(), out);
}

Error system_failure(const std::string& path, std::string_view what) {
  return {Errc::io, cat(path, ": cannot ", what, ": ", std::strerror(errno))};
}

}  // namespace

EvalFile::EvalFile(EvalFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      path_(std::move(other.path_)),
      lines_(std::move(other.lines_)) {
}

EvalFile::~EvalFile() {
  if (file_ >= 0) ::close(file_);
}

Result<EvalFile> EvalFile::open(const std::string& path, const Json& settings, std::size_t items) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return fail(system_failure(path, "open for writing"));
  EvalFile out(file, path);
  if (::flock(file, LOCK_EX | LOCK_NB) != 0)
    return fail(Errc::usage,
                cat(path, ": another process is writing to it; choose another --output"));
  RETURN_IF_ERROR(out.check_settings(settings));
  RETURN_IF_ERROR(out.read_lines(items));
  return out;
}

Result<> EvalFile::check_settings(const Json& settings) const {
  std::error_code failed;
  if (std::filesystem::file_size(path_, failed) == 0 && !failed)
    return write_file_durably(settings_path(path_), settings.dump(1) + "\n");
  const auto before = read_json(settings_path(path_));
  if (!before)
    return fail(Errc::usage,
                cat(path_, " exists, but the settings that it was written with cannot be read (",
                    before.error().what, "); choose another --output"));
  std::vector<std::string> different;
  differences("", *before, settings, different);
  if (different.empty()) return {};
  return fail(Errc::usage, cat(path_, " was written with other settings: ", join(different, ", "),
                               "; choose another --output, or repeat the command that wrote it"));
}

Result<> EvalFile::read_lines(std::size_t items) {
  auto text = read_file(path_);
  RETURN_IF_ERROR(text);
  const std::size_t end = text->rfind('\n');
  const std::size_t complete = end == std::string::npos ? 0 : end + 1;
  if (complete < text->size() && ::ftruncate(file_, static_cast<off_t>(complete)) != 0)
    return fail(system_failure(path_, "cut off an incomplete line"));
  for (std::string_view rest = std::string_view(*text).substr(0, complete); !rest.empty();) {
    const std::string where = cat(path_, ":", lines_.size() + 1);
    const auto length = rest.find('\n');
    auto line = parse_json(rest.substr(0, length), where);
    if (!line) return fail(Errc::corrupt, line.error().what);
    const Json* id = line->find("id");
    if (!id || *id != Json(static_cast<std::int64_t>(lines_.size())) || lines_.size() == items)
      return fail(Errc::corrupt,
                  cat(where, ": expected ",
                      lines_.size() == items ? "the end of the file" : cat("item ", lines_.size()),
                      ", found ", id ? cat("item ", id->dump()) : "no \"id\"",
                      "; remove the file to start over"));
    lines_.push_back(std::move(*line));
    rest.remove_prefix(length + 1);
  }
  return {};
}

Result<> EvalFile::append(const Json& line) {
  const std::string text = line.dump() + "\n";
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t written = ::write(file_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(system_failure(path_, "write"));
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace troupe::launch::commands
